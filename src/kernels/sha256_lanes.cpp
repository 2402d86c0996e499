#include "kernels/sha256_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/sha256_blocks.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sha256_lanes.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#ifndef MARGINMERGE_KERNELS_SHA256_LANES_ONCE
#define MARGINMERGE_KERNELS_SHA256_LANES_ONCE
namespace marginmerge {
namespace {

constexpr std::size_t most_lanes = 16;
constexpr std::size_t block_bytes = 64;

/// States of the lanes side by side: word, lane.
struct LaneStates {
    alignas(64) std::uint32_t word[8][most_lanes];
};
using LaneBlocks = std::array<const std::uint8_t*, most_lanes>;

}  // namespace
}  // namespace marginmerge
#endif

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Portable code gains nothing by lanes.
constexpr bool portable = HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR;
using Tag = hn::CappedTag<std::uint32_t, portable ? 1 : most_lanes>;
using Words = hn::Vec<Tag>;

HWY_INLINE constexpr std::size_t Lanes() { return portable ? 1 : HWY_MIN(HWY_LANES(std::uint32_t), most_lanes); }

std::size_t CountLanes() { return Lanes(); }

template <int a, int b, int c>
HWY_INLINE Words Rotations(const Words& x) {
    return hn::Xor3(hn::RotateRight<a>(x), hn::RotateRight<b>(x), hn::RotateRight<c>(x));
}

template <int a, int b, int shift>
HWY_INLINE Words Extend(const Words& x) {
    return hn::Xor3(hn::RotateRight<a>(x), hn::RotateRight<b>(x), hn::ShiftRight<shift>(x));
}

/// Bits of `yes` where those of the mask are set.
HWY_INLINE Words Choose(const Words& mask, const Words& yes, const Words& no) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return hn::IfVecThenElse(mask, yes, no);  // one instruction; other levels look at whole bytes or words
#else
    return hn::Xor(no, hn::And(mask, hn::Xor(yes, no)));
#endif
}

/// The 16 big-endian words of a block of every lane: words[word][lane].
HWY_INLINE void LoadBlock(const LaneBlocks& blocks, std::size_t offset, std::uint32_t (*HWY_RESTRICT words)[Lanes()]) {
    for (std::size_t lane = 0; lane < Lanes(); ++lane) {
        const std::uint8_t* from = blocks[lane] + offset;
        for (std::size_t i = 0; i < 16; ++i) {
            std::uint32_t word;
            std::memcpy(&word, from + 4 * i, sizeof(word));
            words[i][lane] = __builtin_bswap32(word);
        }
    }
}

/// Feeds `count` blocks of every lane into the states.
void FeedBlocks(LaneStates& states, const LaneBlocks& blocks, std::size_t count, const std::uint32_t* constants) {
    const Tag d;
    Words state[8];
    for (std::size_t i = 0; i < 8; ++i) state[i] = hn::Load(d, states.word[i]);
    alignas(64) std::uint32_t words[16][Lanes()];
    for (std::size_t block = 0; block < count; ++block) {
        LoadBlock(blocks, block * block_bytes, words);
        Words w[16], s[8];
        HWY_UNROLL(16)
        for (std::size_t i = 0; i < 16; ++i) w[i] = hn::Load(d, words[i]);
        HWY_UNROLL(8)
        for (std::size_t i = 0; i < 8; ++i) s[i] = state[i];
        for (std::size_t round = 0; round < 64; round += 16) {
            // Instead of moving the eight words along, round i finds word k at (k - i) mod 8; the same for the last
            // sixteen words of the schedule.
            HWY_UNROLL(16)
            for (std::size_t i = 0; i < 16; ++i) {
                if (round > 0) {
                    const Words sum = hn::Add(Extend<7, 18, 3>(w[(i + 1) % 16]), w[(i + 9) % 16]);
                    w[i] = hn::Add(hn::Add(w[i], sum), Extend<17, 19, 10>(w[(i + 14) % 16]));
                }
                const Words &a = s[(16 - i) % 8], &b = s[(17 - i) % 8], &c = s[(18 - i) % 8];
                const Words &e = s[(20 - i) % 8], &f = s[(21 - i) % 8], &g = s[(22 - i) % 8];
                Words &fourth = s[(19 - i) % 8], &last = s[(23 - i) % 8];
                const Words input = hn::Add(last, hn::Add(w[i], hn::Set(d, constants[round + i])));
                const Words choose = Choose(e, f, g);
                const Words majority = Choose(hn::Xor(a, b), c, b);
                const Words t1 = hn::Add(hn::Add(input, choose), Rotations<6, 11, 25>(e));
                fourth = hn::Add(fourth, t1);
                last = hn::Add(t1, hn::Add(Rotations<2, 13, 22>(a), majority));
            }
        }
        for (std::size_t i = 0; i < 8; ++i) state[i] = hn::Add(state[i], s[i]);
    }
    for (std::size_t i = 0; i < 8; ++i) hn::Store(state[i], d, states.word[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(CountLanes);
HWY_EXPORT(FeedBlocks);

namespace {

/// A message on its way through a lane: first its whole blocks where they are, then a tail of one or two blocks with
/// what is left of it, the padding and its length.
struct LaneMessage {
    std::size_t number = 0;
    const std::uint8_t* at = nullptr;
    std::size_t left = 0;  ///< blocks from there; 0: all were fed
    std::size_t tail_blocks = 0;
    std::array<std::uint8_t, 2 * block_bytes> tail;

    void start(std::size_t message, std::span<const std::byte> bytes) {
        number = message;
        at = reinterpret_cast<const std::uint8_t*>(bytes.data());
        left = bytes.size() / block_bytes;
        const std::size_t rest = bytes.size() % block_bytes;
        tail_blocks = rest + 9 <= block_bytes ? 1 : 2;  // a byte and the length follow
        tail.fill(0);
        if (rest > 0) std::memcpy(tail.data(), at + left * block_bytes, rest);
        tail[rest] = 0x80;
        const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
        for (std::size_t i = 0; i < 8; ++i)
            tail[tail_blocks * block_bytes - 1 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
        advance(0);
    }
    void advance(std::size_t blocks) {
        at += blocks * block_bytes;
        left -= blocks;
        if (left > 0) return;
        at = tail.data();
        left = std::exchange(tail_blocks, 0);
    }
};

}  // namespace

std::vector<Sha256::Digest> sha256_in_lanes(std::span<const std::span<const std::byte>> messages) {
    const std::size_t lanes = MARGINMERGE_DISPATCH(CountLanes)();
    // Long messages first: the last ones then leave few lanes without work.
    std::vector<std::size_t> order(messages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return messages[a].size() > messages[b].size(); });
    std::vector<Sha256::Digest> digests(messages.size());
    LaneStates states{};
    std::array<LaneMessage, most_lanes> running;
    std::size_t next = 0;
    for (std::size_t done = 0; done < messages.size();) {
        LaneBlocks blocks{};
        std::size_t count = 0;
        const std::uint8_t* any = nullptr;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            LaneMessage& m = running[lane];
            if (m.left == 0 && next < order.size()) {
                m.start(order[next], messages[order[next]]);
                ++next;
                const Sha256State start = sha256_start();
                for (std::size_t i = 0; i < 8; ++i) states.word[i][lane] = start[i];
            }
            if (m.left == 0) continue;
            blocks[lane] = any = m.at;
            count = count == 0 ? m.left : std::min(count, m.left);
        }
        for (std::size_t lane = 0; lane < lanes; ++lane)
            if (blocks[lane] == nullptr) blocks[lane] = any;  // whose result nobody reads
        MARGINMERGE_DISPATCH(FeedBlocks)(states, blocks, count, sha256_constants().data());
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            LaneMessage& m = running[lane];
            if (m.left == 0) continue;
            m.advance(count);
            if (m.left > 0) continue;
            Sha256State state;
            for (std::size_t i = 0; i < 8; ++i) state[i] = states.word[i][lane];
            digests[m.number] = sha256_digest(state);
            ++done;
        }
    }
    return digests;
}

std::vector<Sha256::Digest> sha256_of_each(std::span<const std::span<const std::byte>> messages) {
    if (!has_sha_instructions() && MARGINMERGE_DISPATCH(CountLanes)() > 1) return sha256_in_lanes(messages);
    std::vector<Sha256::Digest> digests;
    for (const auto& message : messages) {
        Sha256 sha;
        sha.update(message);
        digests.push_back(sha.finish());
    }
    return digests;
}

}  // namespace marginmerge
#endif  // HWY_ONCE
