#include "overview.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/convert.h"
#include "kernels/products.h"

namespace marginmerge::server {

namespace {

constexpr std::size_t max_rows = 2048;
constexpr std::size_t max_distinct = 24;

Matrix transposed(ConstMatrix m) {
    Matrix out(m.cols, m.rows);
    for (std::size_t i = 0; i < m.rows; ++i) {
        for (std::size_t j = 0; j < m.cols; ++j) out(j, i) = m(i, j);
    }
    return out;
}

struct Field {
    std::size_t pages = 0;
    std::size_t numbers = 0;
    double minimum = 0, maximum = 0;
    std::map<std::string, std::size_t> values;
    bool more = false;
};

void count_field(Field& field, const nlohmann::json& value) {
    ++field.pages;
    if (value.is_number()) {
        const double v = value.get<double>();
        field.minimum = field.numbers == 0 ? v : std::min(field.minimum, v);
        field.maximum = field.numbers == 0 ? v : std::max(field.maximum, v);
        ++field.numbers;
    } else {
        const std::string text = value.is_string() ? value.get<std::string>() : value.get<bool>() ? "true" : "false";
        if (text.size() > 120 || (field.values.size() >= 1000 && field.values.count(text) == 0)) {
            field.more = true;
        } else {
            ++field.values[text];
        }
    }
}

std::vector<FieldSummary> summarise(const std::map<std::string, Field>& fields) {
    std::vector<FieldSummary> out;
    for (const auto& [name, field] : fields) {
        FieldSummary s;
        s.name = name;
        s.pages = field.pages;
        s.numeric = field.numbers == field.pages;
        s.minimum = field.minimum;
        s.maximum = field.maximum;
        s.values.assign(field.values.begin(), field.values.end());
        std::stable_sort(s.values.begin(), s.values.end(),
                         [](const auto& a, const auto& b) { return a.second > b.second; });
        s.more_values = field.more || s.values.size() > max_distinct;
        if (s.values.size() > max_distinct) s.values.resize(max_distinct);
        out.push_back(std::move(s));
    }
    return out;
}

}  // namespace

double redundancy(ConstMatrix v) {
    if (v.rows == 0) return 0;
    Matrix reduced;
    if (v.rows > max_rows) {  // an even sample of rows; the mean of squared cosines hardly moves
        reduced = Matrix(max_rows, v.cols);
        for (std::size_t i = 0; i < max_rows; ++i) std::copy_n(v.row(i * v.rows / max_rows), v.cols, reduced.row(i));
    }
    const ConstMatrix rows = reduced.empty() ? v : reduced.view();
    // tr and Frobenius norm of V^T V and V V^T are the same: take the smaller one.
    const Matrix turned = rows.rows > rows.cols ? transposed(rows) : Matrix(rows);
    Matrix gram(turned.rows(), turned.rows());
    product(turned, turned, gram);
    double trace = 0;
    double squares = 0;
    for (std::size_t i = 0; i < gram.rows(); ++i) trace += gram(i, i);
    for (const float g : gram.flat()) squares += static_cast<double>(g) * g;
    return trace > 0 ? static_cast<double>(v.rows) * squares / (trace * trace) : 0;
}

Overview make_overview(const Snapshot& snapshot, std::size_t max_pages, double seconds,
                       const std::atomic<bool>& cancelled) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const Index& index = *snapshot.index;
    const View* full = nullptr;
    for (const View& view : snapshot.views) {
        if (view.kind == View::Kind::full) full = &view;
    }
    Overview out;
    out.basis = full != nullptr ? "full" : "stored";
    std::map<std::string, Field> fields;
    const std::size_t wanted = std::min(index.size(), max_pages);
    for (std::size_t n = 0; n < wanted && !cancelled.load() && Clock::now() < end; ++n) {
        const std::size_t i = n * index.size() / wanted;
        PageSummary page;
        page.id = index.id(i);
        page.vectors = index.vectors_of(i);
        page.source_vectors = index.source_vectors_of(i);
        if (full != nullptr && full->options.full) {
            page.redundancy = redundancy(to_float(index.full_vectors(i)));
        } else if (full != nullptr) {
            if (const auto at = full->index->find(page.id)) {
                page.source_vectors = full->index->vectors_of(*at);
                page.redundancy = redundancy(full->index->vectors(*at));
            }
        } else {
            page.redundancy = redundancy(index.vectors(i));
        }
        out.pages.push_back(std::move(page));
        const auto metadata = nlohmann::json::parse(index.metadata(i), nullptr, false);
        if (metadata.is_object()) {
            for (const auto& [name, value] : metadata.items()) {
                if ((value.is_number() || value.is_string() || value.is_boolean()) &&
                    (fields.size() < 64 || fields.count(name) > 0)) {
                    count_field(fields[name], value);
                }
            }
        }
    }
    out.sampled = out.pages.size();
    out.fields = summarise(fields);
    return out;
}

}  // namespace marginmerge::server
