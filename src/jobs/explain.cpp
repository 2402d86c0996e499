#include "marginmerge/jobs/explain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/random.h"
#include "data/redundancy.h"
#include "io/atomic_file.h"
#include "io/folders.h"
#include "io/multi_vector_file.h"
#include "io/npy.h"
#include "jobs/page_memory.h"
#include "jobs/recipe_json.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "marginmerge/jobs/model_file.h"
#include "merge/construct.h"
#include "merge/features.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

Matrix transposed(const Matrix& m) {
    Matrix t(m.cols(), m.rows());
    for (std::size_t i = 0; i < m.rows(); ++i)
        for (std::size_t j = 0; j < m.cols(); ++j) t(j, i) = m(i, j);
    return t;
}

// Weights of the patches in the representative of their cluster, by the rule that made it.
void fill_alpha(const Recipe& recipe, PageWorkspace& w) {
    const std::string& rule = recipe.representative;
    if (rule == "learned") return page_alpha(w.residual, w);
    if (rule == "response") return page_alpha({}, w);
    w.weight.assign(w.clusters.assign.size(), 0.0f);
    for (std::size_t c = 0; c < w.lists.clusters(); ++c)
        for (std::size_t p = w.lists.first(c); p < w.lists.first(c) + w.lists.size(c); ++p)
            w.weight[w.lists.patch(p)] =
                rule == "anchor" ? (w.lists.patch(p) == static_cast<std::size_t>(w.clusters.anchors[c]) ? 1.0f : 0.0f)
                                 : 1.0f / static_cast<float>(w.lists.size(c));
}

// sum_t omega_t max_i response(t,i): how well some vectors answer the prototypes.
double response_of(const Model& model, ConstMatrix vectors) {
    const auto omega = model.bank.weights();
    std::vector<std::int32_t> index(omega.size());
    std::vector<float> best(omega.size());
    nearest(model.bank.prototypes, vectors, index, best);
    double sum = 0;
    for (std::size_t t = 0; t < omega.size(); ++t) sum += static_cast<double>(omega[t]) * best[t];
    return sum;
}

std::vector<ExplainedCluster> describe_clusters(const PageWorkspace& w) {
    std::vector<ExplainedCluster> out(w.lists.clusters());
    for (std::size_t c = 0; c < out.size(); ++c) {
        ExplainedCluster& e = out[c];
        e.anchor = c < w.clusters.anchors.size() ? static_cast<std::size_t>(w.clusters.anchors[c])
                   : w.lists.size(c) > 0         ? w.lists.patch(w.lists.first(c))
                                                 : 0;
        e.patches = w.lists.size(c);
        if (c < w.selection.gains.size()) e.gain = w.selection.gains[c];
        double entropy = 0;
        for (std::size_t p = w.lists.first(c); p < w.lists.first(c) + w.lists.size(c); ++p) {
            const double alpha = w.weight[w.lists.patch(p)];
            e.largest_weight = std::max(e.largest_weight, alpha);
            entropy -= alpha * std::log(alpha + 1e-8);
        }
        e.entropy = entropy / std::log(std::max<double>(static_cast<double>(e.patches), 2));
    }
    return out;
}

class Folder {
public:
    Folder(const std::filesystem::path& path, std::vector<std::string>& files) : path_(path), files_(files) {
        if (path_.empty()) return;
        make_folder(path_);
    }
    /// What an earlier run with another recipe wrote and this one did not would be taken for this one's.
    void remove_others() const {
        if (path_.empty()) return;
        for (const char* name : {"omega", "responses", "coverage", "relevance", "anchor_cos", "base_weight", "features",
                                 "residual", "greedy_gains"}) {
            const std::string file = std::string(name) + ".npy";
            std::error_code ignored;
            if (std::find(files_.begin(), files_.end(), file) == files_.end())
                std::filesystem::remove(path_ / file, ignored);
        }
    }
    template <class Values>
    void write(const std::string& name, const Values& values) {
        if (path_.empty()) return;
        write_npy(path_ / (name + ".npy"), values);
        files_.push_back(name + ".npy");
    }
    void write_text(const std::string& name, const std::string& text) {
        if (path_.empty()) return;
        write_text_file(path_ / name, text);
        files_.push_back(name);
    }

private:
    std::filesystem::path path_;
    std::vector<std::string>& files_;
};

std::span<const float> floats(const std::vector<float>& v) { return v; }

nlohmann::json meta_of(const ExplainReport& r, const Recipe& recipe) {
    return {{"document", r.document},
            {"n", r.vectors},
            {"d", r.dim},
            {"k", r.kept},
            {"M", r.prototypes},
            {"recipe", recipe_to_json(recipe)},
            {"effective_rank", r.effective_rank},
            {"redundancy", r.redundancy},
            {"greedy_picks_with_positive_gain", r.reasoned},
            {"coverage_of_anchors", r.anchor_coverage},
            {"full_response", r.full_response},
            {"kept_response", r.kept_response}};
}

}  // namespace

ExplainReport explain(const ExplainOptions& options) {
    const MultiVectorSet set = read_multi_vectors(options.documents);
    const auto index = set.find(options.document);
    if (!index)
        fail(ErrorCode::not_found, "{}: document '{}': expected an id of the file, found none such",
             options.documents.string(), options.document);
    Model model;
    if (!options.model.empty()) model = load_model(options.model);
    const Recipe recipe = resolve_recipe(options.recipe, options.model.empty() ? nullptr : &model, set.offsets());
    const Matrix v = to_float(set.vectors(*index));
    if (v.rows() == 0)
        fail(ErrorCode::invalid_argument, "{}: document '{}': expected vectors, found none", options.documents.string(),
             options.document);
    for (const float x : v.flat())
        if (!std::isfinite(x))
            fail(ErrorCode::corrupt, "{}: document '{}': expected finite numbers, found {}", options.documents.string(),
                 options.document, x);

    ExplainReport report;
    report.document = options.document;
    report.index = *index;
    report.vectors = v.rows();
    report.dim = v.cols();
    report.recipe = recipe;
    report.effective_rank = effective_rank(v);
    report.redundancy = static_cast<double>(v.rows()) / report.effective_rank;
    report.prototypes = model.bank.size();

    PageMemory memory;
    const PageInput page{v, set.grid(*index), mix_seed(recipe.seed, *index),
                         memory.of(set.vectors(*index), model, recipe)};
    report.remembered = page.remembered.rows;
    PageWorkspace w;
    const CompressedPage out = compress_page(page, model, recipe, w);
    const RepresentativeRule& rule = representative_rule(recipe.representative);
    report.kept = out.representatives.rows();
    report.reasoned = rule.uses_anchors ? w.selection.reasoned : 0;
    Folder folder(options.output, report.files);

    // What the rule itself did not need is computed for show: clusters as the owners say.
    w.clusters.assign = out.owner;
    group_clusters(v, out.owner, report.kept, w.lists);
    if (!rule.uses_anchors) {
        w.clusters.anchors.clear();
        w.selection.gains.clear();
        for (std::size_t c = 0; c < report.kept; ++c)
            w.clusters.anchors.push_back(static_cast<std::int32_t>(w.lists.patch(w.lists.first(c))));
    }
    if (!model.bank.empty()) {
        page_responses(page, model, recipe, w);
        w.clusters.anchor_cosine.resize(v.rows());
        for (std::size_t i = 0; i < v.rows(); ++i)
            w.clusters.anchor_cosine[i] = dot(
                v.row(i), v.row(static_cast<std::size_t>(w.clusters.anchors[static_cast<std::size_t>(out.owner[i])])),
                v.cols());
        base_weights(recipe, w);
        compute_features(page, model.uses_grid, w, w.clusters.features);
        if (model.network && model.scaling) page_residuals(model, recipe, w);
    }
    fill_alpha(recipe, w);
    report.clusters = describe_clusters(w);

    folder.write("anchors", std::span<const std::int32_t>(w.clusters.anchors));
    folder.write("assign", std::span<const std::int32_t>(out.owner));
    folder.write("alpha", floats(w.weight));
    folder.write("representatives", out.representatives.view());
    if (!model.bank.empty()) {
        const std::size_t m = report.prototypes;
        for (std::size_t t = 0; t < m; ++t) {
            float best = 0;
            for (const auto a : w.clusters.anchors)
                best = std::max(best, w.responses.coverage(static_cast<std::size_t>(a), t));
            report.anchor_coverage += static_cast<double>(w.responses.omega[t]) * best;
        }
        report.full_response = response_of(model, v);
        report.kept_response = response_of(model, out.representatives);
        folder.write("omega", floats(w.responses.omega));
        folder.write("responses", transposed(w.responses.responses).view());
        folder.write("coverage", transposed(w.responses.coverage).view());
        folder.write("relevance", floats(w.clusters.relevance));
        folder.write("anchor_cos", floats(w.clusters.anchor_cosine));
        folder.write("base_weight", floats(w.clusters.base_weight));
        folder.write("features", w.clusters.features.view());
        if (model.network && model.scaling) folder.write("residual", floats(w.residual));
    }
    const std::vector<float> gains(w.selection.gains.begin(), w.selection.gains.end());
    if (!gains.empty()) folder.write("greedy_gains", floats(gains));
    folder.write_text("meta.json", meta_of(report, recipe).dump(1) + "\n");
    folder.remove_others();
    return report;
}

}  // namespace marginmerge
