#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace marginmerge {

struct ScoredPage {
    float score = 0;
    std::size_t position = 0;
};

/// The order of results: higher score first, lower position on a tie. A strict total order, so the
/// best k are the same whatever order pages are scored in.
inline bool ranks_before(const ScoredPage& a, const ScoredPage& b) {
    return a.score > b.score || (a.score == b.score && a.position < b.position);
}

/// Keeps the best k pages of a stream in a heap whose top is the worst kept.
class TopK {
public:
    explicit TopK(std::size_t k) : k_(k) {}

    void offer(float score, std::size_t position) {
        // Not-a-number has no place in an order; such a page comes last.
        const ScoredPage page{std::isnan(score) ? -std::numeric_limits<float>::infinity() : score, position};
        if (heap_.size() < k_) {
            heap_.push_back(page);
            std::push_heap(heap_.begin(), heap_.end(), ranks_before);
        } else if (k_ > 0 && ranks_before(page, heap_.front())) {
            std::pop_heap(heap_.begin(), heap_.end(), ranks_before);
            heap_.back() = page;
            std::push_heap(heap_.begin(), heap_.end(), ranks_before);
        }
    }

    void merge(const TopK& other) {
        for (const ScoredPage& page : other.heap_) offer(page.score, page.position);
    }

    /// Best first; the heap is empty afterwards.
    std::vector<ScoredPage> take() {
        std::sort(heap_.begin(), heap_.end(), ranks_before);
        return std::move(heap_);
    }

private:
    std::size_t k_;
    std::vector<ScoredPage> heap_;
};

}  // namespace marginmerge
