#include "jobs/fit_context.h"
namespace marginmerge {
void fit_bank(FitContext& context) {
    // TEMPORARY
    const auto& c = context.corpora[0];
    const Matrix& m = context.queries[0][0].rows().data ? Matrix(context.queries[0][0].rows()) : Matrix();
    context.model.bank.prototypes = m;
    context.model.bank.frequencies.assign(m.rows(), 1.0F / float(m.rows()));
    (void)c;
}
}  // namespace marginmerge
