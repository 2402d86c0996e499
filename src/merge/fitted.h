#pragma once

#include "marginmerge/merge/model.h"
#include "merge/fitted_start.h"

namespace marginmerge {

/// Moves a page's prepared start: x [k,d] receives the representatives. `parts` may be empty.
void fit_page(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
              FitWorkspace& w, Matrix& x);

}  // namespace marginmerge
