#include "kernels/level.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/fail.h"
#include "kernels/maxsim.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/level.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

// Answered from inside the chosen implementation: the name cannot differ from what runs.
std::int64_t Target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(Target);

namespace {

// Highway calls its portable code EMU128 or SCALAR depending on the compiler.
const char* name_of(std::int64_t target) {
    return target == HWY_EMU128 || target == HWY_SCALAR ? "SCALAR" : hwy::TargetName(target);
}

std::int64_t supported() {
    hwy::SetSupportedTargetsForTest(0);
    return (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
}

std::vector<std::int64_t> targets_of(std::int64_t mask) {
    std::vector<std::int64_t> targets;
    for (; mask != 0; mask &= mask - 1) targets.push_back(mask & -mask);  // the lowest bit is the best
    return targets;
}

}  // namespace

std::vector<std::string> kernel_levels() {
    const char* current = kernel_name();
    std::vector<std::string> names;
    for (const std::int64_t target : targets_of(supported())) names.emplace_back(name_of(target));
    force_kernel_level(current);
    return names;
}

void force_kernel_level(std::string_view name) {
    std::string wanted(name);
    std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    std::string known;
    const std::int64_t available = supported();
    for (const std::int64_t target : targets_of(available)) {
        if (wanted.empty() || wanted == name_of(target)) {
            hwy::SetSupportedTargetsForTest(target);
            hwy::GetChosenTarget().Update(target);
            return;
        }
        known += (known.empty() ? "" : ", ") + std::string(name_of(target));
    }
    hwy::GetChosenTarget().Update(available);
    fail(ErrorCode::invalid_argument, "MARGINMERGE_KERNEL: expected one of {}, found {}", known, name);
}

void apply_kernel_environment() {
    const char* name = std::getenv("MARGINMERGE_KERNEL");
    force_kernel_level(name == nullptr ? "" : name);
}

const char* kernel_name() { return name_of(MARGINMERGE_DISPATCH(Target)()); }

}  // namespace marginmerge
#endif  // HWY_ONCE
