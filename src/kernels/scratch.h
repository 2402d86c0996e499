#pragma once

#include "kernels/aligned.h"

namespace marginmerge {

/// At least `count` floats of this thread's own, 64-byte aligned, contents undefined; valid until
/// the next call with the same number.
template <int number>
inline float* scratch_floats(std::size_t count) {
    thread_local AlignedArray<float> buffer;
    if (buffer.size() < count) buffer = AlignedArray<float>(count + count / 2);
    return buffer.data();
}

}  // namespace marginmerge
