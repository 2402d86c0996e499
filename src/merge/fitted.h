#pragma once

#include "marginmerge/merge/model.h"
#include "merge/fitted_start.h"

namespace marginmerge {

/// What each of a page's probes weighs, sum 1: more where the page answers better than pages usually do. Those answers
/// lift a page to the top of a ranking; an even fit rounds them off, and it is relevant pages that have them.
void probe_weights(const FitStart& start, const ProbeSet& probes, const FittedParts& parts,
                   const FittedSettings& settings, std::vector<float>& weights);

/// Moves a page's prepared start: x [k,d] receives the representatives. `parts` may be empty.
void fit_page(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
              FitWorkspace& w, Matrix& x);

}  // namespace marginmerge
