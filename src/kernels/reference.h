#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"
#include "marginmerge/core/matrix.h"

/// What the kernels compute, written as plainly as possible and with the same roundings, so that
/// tests can ask for equal bits. `fused` says whether a multiplication and the addition after it
/// round once (levels with fused multiply-add) or twice.
namespace marginmerge::reference {

/// Whether the level in use rounds a multiply-add once.
bool fused_level();

/// One sum over the dimension in order.
float inner_product(const float* a, const float* b, std::size_t d, bool fused);

/// Number i goes to partial sum i % parts; then halves are added to halves. parts is a power of two.
float interleaved_sum(std::span<const float> values, std::size_t parts);

/// sum_i max_j u_i . v_j; -infinity without documents.
float maxsim(ConstMatrix query, ConstMatrix document, bool fused);

/// Best response and its lowest index for every token.
void winners(ConstMatrix query, ConstMatrix document, bool fused, std::span<float> best,
             std::span<std::int32_t> winner);

/// The integer scores of the coded stores.
float maxsim(const PreparedInt8Query& query, Int8View document);
float maxsim(const PreparedBitsQuery& query, BitsView document);

/// Inner product with 32 interleaved partial sums, as dot() adds.
float dot(const float* a, const float* b, std::size_t d, bool fused);

}  // namespace marginmerge::reference
