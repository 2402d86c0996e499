#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace marginmerge {

/// Several processes that do one job together. Each runs the same program with the same options on the same files and
/// reaches these calls in the same order; calls come from the main thread only. Process 0 leads: it alone writes files
/// and returns a full report. Work is cut into the pieces that a single process uses, and results are put together in
/// the order of the pieces, so the number of processes does not show in the output.
class Cluster {
public:
    /// The result of one piece of work, as bytes.
    using Compute = std::function<std::vector<std::byte>(std::size_t task)>;
    using Collect = std::function<void(std::size_t task, std::span<const std::byte> result)>;

    virtual ~Cluster() = default;
    virtual std::size_t rank() const = 0;
    virtual std::size_t size() const = 0;
    /// Processes on this machine, this one included.
    virtual std::size_t local_size() const = 0;
    bool leads() const { return rank() == 0; }

    /// Has every task computed once, by whichever process is free; process 0 hands them out in this order (the list of
    /// the others is ignored) and collects results as they come. `compute` may run on a thread of its own.
    virtual void run(std::span<const std::size_t> tasks, const Compute& compute, const Collect& collect) = 0;

    /// What every process gave, by rank, on every process.
    virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) = 0;

    /// Ends every process of the job at once with this exit status. For errors: does not return.
    [[noreturn]] virtual void abort(int status) = 0;
};

/// A contiguous part of 0..count.
struct Slice {
    std::size_t begin = 0, end = 0;
};

/// The part of 0..count that falls to process `rank` of `size`; the parts follow each other in order of rank.
constexpr Slice slice_of(std::size_t count, std::size_t rank, std::size_t size) {
    return {count * rank / size, count * (rank + 1) / size};
}
inline Slice slice_of(std::size_t count, const Cluster* cluster) {
    return cluster != nullptr ? slice_of(count, cluster->rank(), cluster->size()) : Slice{0, count};
}

}  // namespace marginmerge
