#include "kernels/sha256_lanes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "kernels/levels.h"

namespace marginmerge {
namespace {

using testing::EveryLevel;

std::vector<std::string> in_lanes(const std::vector<std::string>& texts) {
    std::vector<std::span<const std::byte>> messages;
    for (const auto& text : texts) messages.push_back(std::as_bytes(std::span(text)));
    std::vector<std::string> digests;
    for (const auto& digest : sha256_in_lanes(messages)) digests.push_back(to_hex(digest));
    return digests;
}

std::vector<std::string> one_by_one(const std::vector<std::string>& texts) {
    std::vector<std::string> digests;
    for (const auto& text : texts) {
        Sha256 sha;
        sha.update(text);
        digests.push_back(to_hex(sha.finish()));
    }
    return digests;
}

std::string random_text(std::size_t length, Random& random) {
    std::string text(length, '\0');
    for (char& c : text) c = static_cast<char>(random.below(256));
    return text;
}

class Sha256Lanes : public EveryLevel {};

TEST_P(Sha256Lanes, KnownVectors) {
    const std::vector<std::string> texts = {"", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                                            std::string(1'000'000, 'a')};
    EXPECT_EQ(in_lanes(texts),
              (std::vector<std::string>{"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
                                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}));
}

// Around every way in which a message can end in a block.
TEST_P(Sha256Lanes, EveryLengthAgreesWithOneByOne) {
    Random random(1);
    std::vector<std::string> texts;
    for (std::size_t length = 0; length < 260; ++length) texts.push_back(random_text(length, random));
    EXPECT_EQ(in_lanes(texts), one_by_one(texts));
}

// Fewer messages than lanes, lanes that run dry early, lanes that take up many messages.
TEST_P(Sha256Lanes, AnyNumberOfMessagesOfAnyLength) {
    Random random(2);
    for (const std::size_t count : {0, 1, 2, 3, 7, 15, 16, 17, 33, 100}) {
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < count; ++i)
            texts.push_back(random_text(random.below(i % 5 == 0 ? 20'000 : 300), random));
        EXPECT_EQ(in_lanes(texts), one_by_one(texts)) << count;
    }
}

TEST_P(Sha256Lanes, WhatIsFasterHereGivesTheSame) {
    const std::string text(1000, 'x');
    const std::span<const std::byte> message = std::as_bytes(std::span(text));
    EXPECT_EQ(to_hex(sha256_of_each({&message, 1}).front()), one_by_one({text}).front());
}

MARGINMERGE_EVERY_LEVEL(Sha256Lanes);

}  // namespace
}  // namespace marginmerge
