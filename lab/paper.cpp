#include "lab/paper.h"

#include <fmt/core.h>

#include <cctype>

#include "lab/resources.h"

namespace marginmerge::lab {

namespace {

std::string letters(const std::string& text) {
    std::string out;
    for (const char c : text)
        if (std::isalnum(static_cast<unsigned char>(c)))
            out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

const nlohmann::json& cells() {
    static const nlohmann::json numbers = resource("", "paper_numbers").at("cells");
    return numbers;
}

}  // namespace

std::string paper_dataset(const std::string& name) {
    const std::string own = letters(name);
    // Flickr30k before Flickr: the longer name first.
    for (const char* known :
         {"ArxivQA", "DocVQA", "InfoVQA", "TAT-DQA", "TabFQuad", "Flickr30k", "Flickr", "COCO", "TextCaps"})
        if (own.starts_with(letters(known))) return known;
    return {};
}

std::optional<double> paper_cell(const std::string& table, const std::string& method, double keep,
                                 const std::string& dataset, const std::string& encoder) {
    const std::string known = dataset == "Avg" ? dataset : paper_dataset(dataset);
    if (known.empty()) return std::nullopt;
    const bool pali = letters(encoder).find("pali") != std::string::npos;
    const auto found =
        cells().find(fmt::format("{}/{}/{}/{:g}/{}", table, pali ? "ColPali" : "ColQwen2.5", method, keep, known));
    if (found == cells().end()) return std::nullopt;
    return found->get<double>();
}

}  // namespace marginmerge::lab
