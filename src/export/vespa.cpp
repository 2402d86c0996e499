// Vespa: a mapped tensor of floats and one of packed sign bits, an application package, and a JSON feed.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "export/rest.h"
#include "export/text.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

// Bits pack into whole bytes only.
bool has_bits(const ExportPlan& plan) { return plan.dim % 8 == 0; }

std::string percent(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
            c == '.')
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

// {"0":[…],"1":[…]}
void append_blocks(std::string& out, ConstMatrix rows) {
    out += '{';
    for (std::size_t i = 0; i < rows.rows; ++i) {
        out += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":";
        append_row(out, rows.row_span(i));
    }
    out += '}';
}

// Signs, eight a byte, first dimension in the highest bit, as hexadecimal digits.
void append_bit_blocks(std::string& out, ConstMatrix rows) {
    static constexpr char digits[] = "0123456789ABCDEF";
    out += '{';
    for (std::size_t i = 0; i < rows.rows; ++i) {
        out += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":\"";
        const auto row = rows.row_span(i);
        for (std::size_t j = 0; j < row.size(); j += 8) {
            unsigned byte = 0;
            for (std::size_t b = 0; b < 8; ++b) byte = byte << 1 | (row[j + b] > 0 ? 1U : 0U);
            out += digits[byte >> 4];
            out += digits[byte & 15];
        }
        out += '"';
    }
    out += '}';
}

std::string fields_text(const ExportPlan& plan, const ExportPage& page) {
    std::string text = "{\"id\":" + json_text(page.id) + ",\"position\":" + std::to_string(page.position);
    if (!page.metadata.empty()) text += ",\"metadata\":" + json_text(page.metadata);
    text += ",\"vectors\":{\"blocks\":";
    append_blocks(text, page.vectors);
    text += '}';
    if (has_bits(plan)) {
        text += ",\"bits\":{\"blocks\":";
        append_bit_blocks(text, page.vectors);
        text += '}';
    }
    return text + "}";
}

class VespaRest : public RestDialect {
public:
    // The schema is part of a deployed application, which the document API cannot make; it can say whether it is there.
    bool prepare(RestServer& server, const ExportPlan& plan, bool, bool) const override {
        const HttpAnswer answer = server.ask(
            {"GET", "/document/v1/" + plan.name + "/" + plan.name + "/docid/?wantedDocumentCount=1", "", ""});
        if (answer.status == 400 || answer.status == 404)
            fail(ErrorCode::unsupported,
                 "expected an application with the document type '{}', found none ({}); deploy the folder "
                 "'application' first",
                 plan.name, complaint(answer.body));
        if (const Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted)
            fail(ErrorCode::io, "looking for the document type: the server refused with {}", verdict.why);
        return true;
    }

    std::string encode(const ExportPlan& plan, const ExportPage& page) const override {
        return fields_text(plan, page);
    }

    std::vector<HttpRequest> requests(const ExportPlan& plan, std::span<const ExportPage> pages,
                                      std::span<const std::string> encoded, const std::string&) const override {
        std::vector<HttpRequest> out;
        for (std::size_t i = 0; i < pages.size(); ++i)
            out.push_back({"POST", "/document/v1/" + plan.name + "/" + plan.name + "/docid/" + percent(pages[i].id),
                           "application/json", "{\"fields\":" + encoded[i] + "}"});
        return out;
    }
};

const VespaRest vespa_rest;

// Lines for `vespa feed`: {"put": "id:NAMESPACE:TYPE::ID", "fields": {…}}.
class FeedDialect : public RestDialect {
public:
    bool prepare(RestServer&, const ExportPlan&, bool, bool) const override { return true; }
    std::string encode(const ExportPlan& plan, const ExportPage& page) const override {
        return "{\"put\":" + json_text("id:" + plan.name + ":" + plan.name + "::" + page.id) +
               ",\"fields\":" + fields_text(plan, page) + "}\n";
    }
    std::vector<HttpRequest> requests(const ExportPlan&, std::span<const ExportPage>,
                                      std::span<const std::string> encoded, const std::string&) const override {
        std::string body;
        for (const auto& line : encoded) body += line;
        return {{"", "", "", std::move(body)}};
    }
};

const FeedDialect feed_dialect;

constexpr std::string_view services_xml = R"xml(<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
  <container id="default" version="1.0">
    <search />
    <document-api />
  </container>
  <content id="content" version="1.0">
    <min-redundancy>1</min-redundancy>
    <documents>
      <document type="{{name}}" mode="index" />
    </documents>
  </content>
</services>
)xml";

constexpr std::string_view schema_head = R"sd(schema {{name}} {
    document {{name}} {
        field id type string {
            indexing: summary | attribute
        }
        field position type long {
            indexing: summary | attribute
        }
        field metadata type string {
            indexing: summary
        }
        field vectors type tensor<float>(patch{}, v[{{dim}}]) {
            indexing: attribute
        }
{{bits}}    }

    # Every page by its exact MaxSim.
    rank-profile exact {
        inputs {
            query(qt) tensor<float>(querytoken{}, v[{{dim}}])
        }
        function max_sim() {
            expression: sum(reduce(sum(query(qt) * attribute(vectors), v), max, patch), querytoken)
        }
        first-phase {
            expression: max_sim
        }
    }
{{two_phase}}}
)sd";

constexpr std::string_view bits_field = R"sd(        field bits type tensor<int8>(patch{}, v[{{bytes}}]) {
            indexing: attribute
        }
)sd";

constexpr std::string_view two_phase = R"sd(
    # Sign bits for every page, exact MaxSim for the best of them.
    rank-profile two_phase inherits exact {
        first-phase {
            expression: sum(reduce(sum(query(qt) * (2 * unpack_bits(attribute(bits)) - 1), v), max, patch), querytoken)
        }
        second-phase {
            rerank-count: 200
            expression: max_sim
        }
    }
)sd";

class Vespa : public ExportTarget {
public:
    std::string_view name() const override { return "vespa"; }
    std::string_view summary() const override {
        return "Vespa: application package and feed, float and packed-bit tensors";
    }
    const RestDialect* rest() const override { return &vespa_rest; }
    TargetLimits limits() const override { return {.empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return joined_file(feed_dialect, plan, folder / "feed.jsonl");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "Vespa";
        readme.load =
            "vespa deploy --wait 300 application\n"
            "vespa feed feed.jsonl        # or, straight from the index: marginmerge export --to vespa --url "
            "http://localhost:8080\n";
        readme.query =
            "vespa query --file query.json     # or: curl -H 'Content-Type: application/json' -d @query.json "
            "http://localhost:8080/search/\n";
        readme.notes = "The rank profile `exact` scores every page by MaxSim over `vectors`." +
                       std::string(has_bits(plan) ? " `two_phase` scores all pages by their packed sign\nbits (`bits`, "
                                                    "32 times smaller) and the best 200 exactly; "
                                                    "put it into `ranking` of the query.\n"
                                                  : "\n") +
                       "`metadata` is text holding a JSON object. Feeding again replaces documents with the same id.\n";
        std::string query = ordered_json({{"yql", "select id, position from " + plan.name + " where true"},
                                          {"hits", 10},
                                          {"ranking", "exact"},
                                          {"timeout", "10s"},
                                          {"input.query(qt)", "@"}})
                                .dump();
        std::string blocks;
        append_blocks(blocks, plan.query);
        query.replace(query.find("\"@\""), 3, blocks);
        const std::string dim = std::to_string(plan.dim), bytes = std::to_string(plan.dim / 8);
        return {{"README.md", readme_text(plan, readme)},
                {"expected.tsv", expected_text(plan)},
                {"application/services.xml", fill(services_xml, {{"name", plan.name}})},
                {"application/schemas/" + plan.name + ".sd",
                 fill(schema_head, {{"name", plan.name},
                                    {"dim", dim},
                                    {"bits", has_bits(plan) ? fill(bits_field, {{"bytes", bytes}}) : ""},
                                    {"two_phase", has_bits(plan) ? std::string(two_phase) : ""}})},
                {"query.json", query + "\n"}};
    }
};

}  // namespace

const ExportTarget& vespa_target() {
    static const Vespa target;
    return target;
}

}  // namespace marginmerge
