#include "core/sha256.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/sha256_blocks.h"

namespace marginmerge {
namespace {

std::string hash(std::string_view text) {
    Sha256 sha;
    sha.update(text);
    return to_hex(sha.finish());
}

TEST(Sha256, KnownVectors) {
    EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheSameDigest) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
    const std::string whole = hash(text);
    for (std::size_t piece = 1; piece < 130; ++piece) {
        Sha256 sha;
        for (std::size_t at = 0; at < text.size(); at += piece) sha.update(std::string_view(text).substr(at, piece));
        EXPECT_EQ(to_hex(sha.finish()), whole) << piece;
    }
}

// The first of these is what other processors run.
TEST(Sha256, PlainCodeAgreesWithTheOneInUse) {
    std::vector<std::uint8_t> bytes(64 * 9);
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{3});
    for (std::size_t count = 0; count <= 9; ++count) {
        Sha256State plain{1, 2, 3, 4, 5, 6, 0xFFFFFFFF, 8}, used = plain;
        sha256_blocks_plain(plain, bytes.data(), count);
        sha256_blocks(used, bytes.data(), count);
        EXPECT_EQ(plain, used) << count;
    }
    // "abc" padded to one block.
    std::vector<std::uint8_t> block(64, 0);
    block[0] = 'a', block[1] = 'b', block[2] = 'c', block[3] = 0x80, block[63] = 24;
    Sha256State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    sha256_blocks_plain(state, block.data(), 1);
    EXPECT_EQ(state[0], 0xba7816bfU);
    EXPECT_EQ(state[7], 0xf20015adU);
}

}  // namespace
}  // namespace marginmerge
