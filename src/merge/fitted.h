#pragma once

#include "marginmerge/merge/model.h"
#include "merge/fitted_solver.h"
#include "merge/fitted_start.h"

namespace marginmerge {

/// Packs the probes' images once for all pages; their number and values must not change afterwards.
void pack_images(FittedParts& parts);

/// What each of a page's probes weighs, sum 1: more where the page answers better than pages usually do. Those answers
/// lift a page to the top of a ranking; an even fit rounds them off, and it is relevant pages that have them.
void probe_weights(const FitStart& start, const ProbeSet& probes, const FittedParts& parts,
                   const FittedSettings& settings, std::vector<float>& weights);

/// What the representatives should answer a probe with: what the page does, and more where that is unusually strong.
/// Such answers decide who is at the top. A page that keeps many of its vectors follows its aim closely and needs less
/// of it.
class AimedAnswers {
public:
    AimedAnswers(const FitStart& start, const FittedParts& parts, const FittedSettings& settings);
    float operator()(std::size_t probe) const;

private:
    const FitStart& start_;
    const FittedParts& parts_;
    float sharpen_;
    float from_;
};

/// Moves a page's prepared start: x [k,d] receives the representatives. `parts` may be empty.
void fit_page(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
              FitWorkspace& w, Matrix& x);

/// Both from the page v [n,d] on, which is to answer as strongly as what is remembered for it [m,d] does as well: of
/// several starts the one from which a short fit to some of the probes comes closest is moved to x [k,d].
/// `start.cluster` receives its clusters.
void fit_best_start(ConstMatrix v, std::size_t k, ConstMatrix remembered, const ProbeSet& probes,
                    const FittedParts& parts, const FittedSettings& settings, FitStart& start, FitWorkspace& w,
                    Matrix& x);

}  // namespace marginmerge
