#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "marginmerge/core/error.h"

namespace marginmerge::test {

/// Runs `body` and expects an Error of this code whose one-line message holds every word given.
template <class Body>
void expect_error(ErrorCode code, std::initializer_list<const char*> words, Body&& body) {
    try {
        body();
    } catch (const Error& error) {
        EXPECT_STREQ(to_string(error.code()), to_string(code)) << error.what();
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
        for (const char* word : words) EXPECT_THAT(error.what(), ::testing::HasSubstr(word));
        return;
    }
    ADD_FAILURE() << "expected an error with code " << to_string(code);
}

}  // namespace marginmerge::test
