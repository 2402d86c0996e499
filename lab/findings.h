#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "marginmerge/eval/bootstrap.h"

namespace marginmerge::lab {

/// A claim of the paper (or of ours) that any data can confirm or refute.
struct Finding {
    enum class Verdict { holds, fails, open, untested };
    std::string id;
    std::string statement;
    Verdict verdict = Verdict::untested;
    Interval interval;     ///< of what is compared
    std::string quantity;  ///< what the interval is about
    std::string note;      ///< data, conditions, or why it is untested
    nlohmann::json to_json() const;
};

const char* to_string(Finding::Verdict verdict);

/// Tests of an interval. `tolerance` is the smallest difference that counts.
enum class Test {
    greater,   ///< holds above 0, fails below, open when the interval includes 0
    less,      ///< the mirror image
    at_least,  ///< holds when not lower by more than the tolerance, fails when clearly lower
    equal,     ///< holds when the interval lies within twice the tolerance, fails when a difference is supported
};
Test parse_test(const std::string& name);
Finding::Verdict judge(const Interval& interval, Test test, double tolerance = 0.005);

}  // namespace marginmerge::lab
