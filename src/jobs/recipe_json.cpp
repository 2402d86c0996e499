#include "jobs/recipe_json.h"

#include <cmath>

#include "core/fail.h"

namespace marginmerge {

namespace {

using nlohmann::json;

const json* member(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void wrong(const std::string& source, const char* key, const char* expected, const json& found) {
    fail(ErrorCode::corrupt, "{}: recipe field '{}': expected {}, found {}", source, key, expected,
         found.dump().substr(0, 60));
}

void read(const json& object, const char* key, std::string& value, const std::string& source) {
    if (const json* found = member(object, key)) {
        if (!found->is_string()) wrong(source, key, "a string", *found);
        value = found->get<std::string>();
    }
}

void read_positive(const json& object, const char* key, double& value, const std::string& source) {
    if (const json* found = member(object, key)) {
        if (!found->is_number() || !(found->get<double>() > 0) || !std::isfinite(found->get<double>()))
            wrong(source, key, "a positive number", *found);
        value = found->get<double>();
    }
}

template <class Integer>
void read_count(const json& object, const char* key, Integer& value, const std::string& source) {
    if (const json* found = member(object, key)) {
        if (!found->is_number_unsigned()) wrong(source, key, "a whole number", *found);
        value = found->get<Integer>();
    }
}

void read(const json& object, const char* key, bool& value, const std::string& source) {
    if (const json* found = member(object, key)) {
        if (!found->is_boolean()) wrong(source, key, "true or false", *found);
        value = found->get<bool>();
    }
}

void read_rounding(const json& object, Budget::Rounding& rounding, const std::string& source) {
    std::string text = rounding == Budget::Rounding::up ? "up" : "nearest_even";
    read(object, "rounding", text, source);
    if (text != "up" && text != "nearest_even") wrong(source, "rounding", "up or nearest_even", json(text));
    rounding = text == "up" ? Budget::Rounding::up : Budget::Rounding::nearest_even;
}

}  // namespace

json recipe_to_json(const Recipe& r) {
    json j = {{"anchors", r.anchors},
              {"fill", r.fill},
              {"representative", r.representative},
              {"rounding", r.budget.rounding == Budget::Rounding::up ? "up" : "nearest_even"},
              {"unit_norm", r.unit_norm},
              {"seed", r.seed},
              {"constants",
               {{"tau_c", r.constants.tau_c},
                {"tau_a", r.constants.tau_a},
                {"p", r.constants.p},
                {"epsilon", r.constants.epsilon},
                {"residual_clip", r.constants.residual_clip}}}};
    if (!r.preset.empty()) j["preset"] = r.preset;
    if (r.align) j["align"] = true;
    if (r.budget.vectors > 0)
        j["vectors"] = r.budget.vectors;
    else
        j["keep"] = r.budget.keep;
    if (r.budget.scale > 0) j["balance"] = {{"scale", r.budget.scale}, {"power", r.budget.power}};
    return j;
}

Recipe recipe_from_json(const std::string& text, const Recipe& base, const std::string& source) {
    const json j = json::parse(text, nullptr, false);
    if (!j.is_object())
        fail(ErrorCode::corrupt, "{}: recipe: expected a JSON object, found {}", source, text.substr(0, 60));
    Recipe r = base;
    read(j, "preset", r.preset, source);
    read(j, "anchors", r.anchors, source);
    read(j, "fill", r.fill, source);
    read(j, "representative", r.representative, source);
    read_positive(j, "keep", r.budget.keep, source);
    if (r.budget.keep > 1) wrong(source, "keep", "a share of at most 1", j["keep"]);
    read_count(j, "vectors", r.budget.vectors, source);
    if (const json* balance = member(j, "balance")) {
        if (!balance->is_object()) wrong(source, "balance", "an object", *balance);
        read_positive(*balance, "scale", r.budget.scale, source);
        read_positive(*balance, "power", r.budget.power, source);
    }
    read_rounding(j, r.budget.rounding, source);
    read_count(j, "seed", r.seed, source);
    read(j, "unit_norm", r.unit_norm, source);
    read(j, "align", r.align, source);
    if (const json* constants = member(j, "constants")) {
        if (!constants->is_object()) wrong(source, "constants", "an object", *constants);
        read_positive(*constants, "tau_c", r.constants.tau_c, source);
        read_positive(*constants, "tau_a", r.constants.tau_a, source);
        read_positive(*constants, "p", r.constants.p, source);
        read_positive(*constants, "epsilon", r.constants.epsilon, source);
        read_positive(*constants, "residual_clip", r.constants.residual_clip, source);
    }
    return r;
}

}  // namespace marginmerge
