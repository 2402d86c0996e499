#include "io/npy_reader.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/made_files.h"

namespace marginmerge {
namespace {

using test::expect_error;
using test::npy_bytes;
using test::raw;

NpyHeader header_of(const std::string& bytes) { return parse_npy_header(std::as_bytes(std::span(bytes)), "n"); }

TEST(NpyReader, TypesAndShapes) {
    const NpyHeader h = header_of(npy_bytes("<f2", "3, 4", ""));
    EXPECT_EQ(h.array.type, DType::f16);
    EXPECT_EQ(h.array.shape, (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(h.data_begin % 64, 0U);
    EXPECT_EQ(header_of(npy_bytes("|V2", "3,", "")).array.type, DType::bf16);
    EXPECT_EQ(header_of(npy_bytes("<f8", "", "")).array.shape.size(), 0U);
    EXPECT_EQ(header_of(npy_bytes("<U3", "3,", "")).text_width, 12U);
    EXPECT_NO_THROW(header_of(npy_bytes("<f4", "7,", "", true)));  // one dimension has no order
}

TEST(NpyReader, Version2) {
    std::string bytes = npy_bytes("<f4", "2, 2", "");
    bytes[6] = 2;
    bytes.insert(10, 2, '\0');
    EXPECT_EQ(header_of(bytes).array.shape[1], 2U);
}

TEST(NpyReader, RefusesWhatItCannotRead) {
    expect_error(ErrorCode::unsupported, {"descr", "'|O'", "pickle"}, [] { header_of(npy_bytes("|O", "3,", "")); });
    expect_error(ErrorCode::unsupported, {"little-endian", "'>f4'"}, [] { header_of(npy_bytes(">f4", "3, 4", "")); });
    expect_error(ErrorCode::unsupported, {"fortran_order", "ascontiguousarray"},
                 [] { header_of(npy_bytes("<f4", "3, 4", "", true)); });
    expect_error(ErrorCode::unsupported, {"'<c8'"}, [] { header_of(npy_bytes("<c8", "3, 4", "")); });
    expect_error(ErrorCode::corrupt, {"shape"}, [] { header_of(npy_bytes("<f4", "-3, 4", "")); });
    expect_error(ErrorCode::corrupt, {"8 dimensions"}, [] { header_of(npy_bytes("<f4", "1,1,1,1,1,1,1,1,1", "")); });
    expect_error(ErrorCode::corrupt, {"header length"}, [] { header_of(npy_bytes("<f4", "3, 4", "").substr(0, 40)); });
    expect_error(ErrorCode::corrupt, {"magic"}, [] { header_of("\x93NUMPX1234567890"); });
    expect_error(ErrorCode::unsupported, {"version", "found 9"}, [] {
        std::string bytes = npy_bytes("<f4", "3, 4", "");
        bytes[6] = 9;
        header_of(bytes);
    });
}

TEST(NpyReader, IntegersAndStrings) {
    ArrayInfo info;
    const std::string numbers = npy_bytes("<u2", "3,", raw<std::uint16_t>({1, 2, 65535}));
    EXPECT_EQ(npy_integers(std::as_bytes(std::span(numbers)), "n", info), (std::vector<std::int64_t>{1, 2, 65535}));
    const std::string names = npy_bytes("|S3", "2,", std::string("ab\0xyz", 6));
    EXPECT_EQ(npy_strings(std::as_bytes(std::span(names)), "n"), (std::vector<std::string>{"ab", "xyz"}));
    expect_error(ErrorCode::corrupt, {"truncated"}, [] {
        ArrayInfo i;
        const std::string cut = npy_bytes("<i8", "3,", raw<std::int64_t>({1, 2}));
        npy_integers(std::as_bytes(std::span(cut)), "n", i);
    });
    expect_error(ErrorCode::corrupt, {"absurd"}, [] {
        ArrayInfo i;
        const std::string huge = npy_bytes("<i8", "4611686018427387904, 4611686018427387904", "");
        npy_integers(std::as_bytes(std::span(huge)), "n", i);
    });
    expect_error(ErrorCode::corrupt, {"63-bit"}, [] {
        ArrayInfo i;
        const std::string big = npy_bytes("<u8", "1,", raw<std::uint64_t>({~0ULL}));
        npy_integers(std::as_bytes(std::span(big)), "n", i);
    });
}

}  // namespace
}  // namespace marginmerge
