#include "lab/findings.h"

#include <cmath>

#include "core/fail.h"

namespace marginmerge::lab {

const char* to_string(Finding::Verdict verdict) {
    switch (verdict) {
        case Finding::Verdict::holds: return "holds";
        case Finding::Verdict::fails: return "does not hold";
        case Finding::Verdict::open: return "not decided";
        case Finding::Verdict::untested: break;
    }
    return "not tested";
}

Test parse_test(const std::string& name) {
    if (name == "greater") return Test::greater;
    if (name == "less") return Test::less;
    if (name == "at_least") return Test::at_least;
    if (name == "equal") return Test::equal;
    fail(ErrorCode::invalid_argument, "test: expected greater, less, at_least or equal, found '{}'", name);
}

Finding::Verdict judge(const Interval& i, Test test, double tolerance) {
    using V = Finding::Verdict;
    switch (test) {
        case Test::greater: return i.low > 0 ? V::holds : i.high < 0 ? V::fails : V::open;
        case Test::less: return i.high < 0 ? V::holds : i.low > 0 ? V::fails : V::open;
        case Test::at_least: return i.low >= -tolerance ? V::holds : i.high < 0 ? V::fails : V::open;
        case Test::equal:
            if (i.low >= -2 * tolerance && i.high <= 2 * tolerance) return V::holds;
            return (i.low > 0 || i.high < 0) && std::fabs(i.mean) >= tolerance ? V::fails : V::open;
    }
    return V::untested;
}

nlohmann::json Finding::to_json() const {
    return {{"id", id},
            {"statement", statement},
            {"verdict", to_string(verdict)},
            {"quantity", quantity},
            {"mean", interval.mean},
            {"low", interval.low},
            {"high", interval.high},
            {"note", note}};
}

}  // namespace marginmerge::lab
