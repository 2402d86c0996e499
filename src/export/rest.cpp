#include "export/rest.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"

namespace marginmerge {

namespace {

// The first text under a key that servers use for what went wrong.
std::string find_reason(const nlohmann::json& value, int depth = 0) {
    if (value.is_string()) return value.get<std::string>();
    if (depth > 6) return {};
    if (value.is_object()) {
        for (const char* key : {"reason", "error", "message", "detail", "msg", "status", "errors", "root_cause"})
            if (const auto found = value.find(key); found != value.end())
                if (auto text = find_reason(*found, depth + 1); !text.empty()) return text;
    }
    if (value.is_array() && !value.empty()) return find_reason(value.front(), depth + 1);
    return {};
}

}  // namespace

std::string complaint(const std::string& body) {
    const auto json = nlohmann::json::parse(body, nullptr, false);
    std::string text = json.is_discarded() ? std::string() : find_reason(json);
    if (text.empty()) text = body;
    if (text.size() > 300) text = text.substr(0, 300) + "...";
    return one_line(text.empty() ? "an empty answer" : text);
}

Verdict judge_status(const HttpAnswer& answer) {
    if (answer.status >= 200 && answer.status < 300) return {};
    const bool again = answer.status == 408 || answer.status == 429 ||
                       (answer.status >= 500 && answer.status != 501 && answer.status != 507);
    return {again ? Verdict::Kind::again : Verdict::Kind::refused,
            fmt::format("status {}: {}", answer.status, complaint(answer.body))};
}

Verdict RestDialect::judge(const HttpAnswer& answer) const { return judge_status(answer); }

HttpAnswer RestServer::demand(const HttpRequest& request, std::string_view what) {
    HttpAnswer answer = ask(request);
    if (const Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted)
        fail(ErrorCode::io, "{}: the server refused with {}", what, verdict.why);
    return answer;
}

void refuse_existing(const ExportPlan& plan, std::string_view what, const std::string& expected,
                     const std::string& found) {
    fail(ErrorCode::unsupported,
         "'{}' exists on the server: {}: expected {}, found {}; choose another --name or remove it there", plan.name,
         what, expected, found);
}

}  // namespace marginmerge
