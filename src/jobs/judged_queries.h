#pragma once

#include <vector>

#include "jobs/fit_context.h"
#include "learn/judged_query.h"
#include "learn/memory.h"

namespace marginmerge {

/// Judged queries of the training side, as many as there is room for, beside what answers them on the pages that are
/// relevant, on those that rank high and on some drawn at random. Those are left out for which nearly every page is
/// relevant: there is nothing to compare with.
std::vector<JudgedQuery> judged_queries(const FitContext& context);

/// What all judged queries of the training side asked of the pages relevant to them, in a fixed random order.
std::vector<AskedQuery> asked_queries(const FitContext& context, const MemorySettings& settings);

}  // namespace marginmerge
