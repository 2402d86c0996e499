// Hand-made bad files, one by one through the command line: exit status 1, one line that names the
// file and what is wrong, nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using namespace std::string_literals;
using test::npy_bytes;
using test::ramp;
using test::raw;
using test::safetensors_bytes;
using test::zip_bytes;

struct BadFile {
    const char* name;
    std::function<std::string()> bytes;
    std::vector<const char*> words;  // that the message must hold
    bool ours = false;               // our layout: inspect must refuse it as well
    friend void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.name; }
};

// One document of 2 rows in our layout, with one piece of the header replaced.
std::string own_layout(const std::string& from = "", const std::string& to = "", const std::string& ids = "ab",
                       std::vector<std::int64_t> offsets = {0, 2}) {
    std::string header = R"({"vectors":{"dtype":"F32","shape":[2,16],"data_offsets":[0,128]},)"
                         R"("offsets":{"dtype":"I64","shape":[2],"data_offsets":[128,144]},)"
                         R"("ids":{"dtype":"U8","shape":[2],"data_offsets":[144,146]}})";
    if (!from.empty()) header.replace(header.find(from), from.size(), to);
    header.resize((header.size() + 8 + 63) / 64 * 64 - 8, ' ');
    return safetensors_bytes(header, raw(ramp(32)) + raw(offsets) + ids);
}

std::string compressed(std::vector<std::int64_t> source_offsets, std::vector<std::int32_t> owner) {
    std::string header = R"({"vectors":{"dtype":"F32","shape":[2,16],"data_offsets":[0,128]},)"
                         R"("offsets":{"dtype":"I64","shape":[2],"data_offsets":[128,144]},)"
                         R"("source_offsets":{"dtype":"I64","shape":[2],"data_offsets":[144,160]},)"
                         R"("owner":{"dtype":"I32","shape":[4],"data_offsets":[160,176]}})";
    header.resize((header.size() + 8 + 63) / 64 * 64 - 8, ' ');
    return safetensors_bytes(header, raw(ramp(32)) + raw<std::int64_t>({0, 2}) + raw(source_offsets) + raw(owner));
}

std::string npy_of(std::size_t rows, std::size_t dim) {
    return npy_bytes("<f4", std::to_string(rows) + ", " + std::to_string(dim), raw(ramp(rows * dim)));
}

std::string with_nan() {
    auto values = ramp(32);
    values[20] = std::numeric_limits<float>::infinity();
    return npy_bytes("<f4", "2, 16", raw(values));
}

// A storage of `elements` floats and a tensor [rows, 16] over it.
std::string pickle_of(std::uint8_t rows, const std::string& elements) {
    const auto count = static_cast<char>(rows);
    return "\x80\x02"s + "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"s + "ctorch\nFloatStorage\n" +
           "X\x01\0\0\0"
           "0X\x03\0\0\0cpu"s +
           elements + "tQK\0K"s + count + "K\x10\x86K\x10K\x01\x86\x89"s + "ccollections\nOrderedDict\n)RtR.";
}

// The sizes of the first entry in the local and central headers, where a zip reader believes them.
std::string lie_about_size(std::string zip, std::uint32_t size) {
    const auto central = zip.rfind("PK\x01\x02");
    std::memcpy(zip.data() + 22, &size, 4);
    std::memcpy(zip.data() + central + 24, &size, 4);
    return zip;
}

std::string damaged_middle(std::string bytes) {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
    return bytes;
}

const std::vector<BadFile>& bad_files() {
    static const std::vector<BadFile> files = {
        {"empty", [] { return ""s; }, {"empty file"}},
        {"one_byte", [] { return "{"s; }, {"line 1"}},
        {"png", [] { return "\x89PNG\r\n\x1a\n"s; }, {"89 50 4e 47"}},
        {"gzip", [] { return "\x1f\x8b\x08\0\0\0\0\0\0\0"s; }, {"gzip"}},
        {"bare_pickle", [] { return "\x80\x02]q\0."s; }, {"pickle"}},
        // safetensors
        {"st_cut_in_header", [] { return own_layout().substr(0, 60); }, {"header length"}, true},
        {"st_cut_in_data", [] { return own_layout().substr(0, own_layout().size() - 10); }, {"data_offsets"}, true},
        {"st_trailing_bytes", [] { return own_layout() + "xx"; }, {"trailing"}, true},
        {"st_header_length_huge", [] { return raw<std::uint64_t>({1ULL << 60}) + "{}"; }, {"header length"}, true},
        {"st_header_length_max", [] { return raw<std::uint64_t>({~0ULL}) + "{}"; }, {"header length"}, true},
        {"st_header_not_json", [] { return safetensors_bytes("{nonsense}      ", ""); }, {"JSON object"}, true},
        {"st_header_deep", [] { return safetensors_bytes("{\"a\":" + std::string(100000, '['), ""); }, {"JSON"}, true},
        {"st_overlap", [] { return own_layout("[128,144]", "[120,136]"); }, {"expected to start at byte 128"}, true},
        {"st_out_of_range", [] { return own_layout("[128,144]", "[900,916]"); }, {"data_offsets", "900"}, true},
        {"st_backwards", [] { return own_layout("[128,144]", "[144,128]"); }, {"data_offsets"}, true},
        {"st_shape_overflow", [] { return own_layout("[2,16]", "[9223372036854775807,16]"); }, {"overflows"}, true},
        {"st_shape_lies", [] { return own_layout("[2,16]", "[3,16]"); }, {"expected 192 bytes", "found 128"}, true},
        {"st_shape_negative", [] { return own_layout("[2,16]", "[-2,16]"); }, {"non-negative"}, true},
        {"st_zero_columns",
         [] {
             return safetensors_bytes(
                 R"({"vectors":{"dtype":"F32","shape":[4611686018427387904,0],"data_offsets":[0,0]},)"
                 R"("offsets":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}  )",
                 raw<std::int64_t>({0, 4611686018427387904}));
         },
         {"vectors", "overflows"},
         true},
        {"st_no_columns",
         [] {
             return safetensors_bytes(R"({"vectors":{"dtype":"F32","shape":[1000000,0],"data_offsets":[0,0]},)"
                                      R"("offsets":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}  )",
                                      raw<std::int64_t>({0, 1000000}));
         },
         {"columns", "found 0"},
         true},
        {"st_unknown_dtype", [] { return own_layout("F32", "F12"); }, {"dtype", "F12"}, true},
        {"st_integer_vectors", [] { return own_layout("F32", "I32"); }, {"vectors", "I32"}, true},
        {"st_float_offsets", [] { return own_layout("I64", "F64"); }, {"offsets", "expected I64", "found F64"}, true},
        {"st_offsets_do_not_start_at_0",
         [] {
             return own_layout("", "", "ab", {1, 2});
         },
         {"offsets", "found 1"},
         true},
        {"st_offsets_descend",
         [] {
             return own_layout("", "", "ab", {0, -5});
         },
         {"ascending"},
         true},
        {"st_offsets_past_the_end",
         [] {
             return own_layout("", "", "ab", {0, 3});
         },
         {"expected 2", "found 3"},
         true},
        {"st_offsets_huge",
         [] {
             return own_layout("", "", "ab", {0, INT64_MAX});
         },
         {"last entry"},
         true},
        {"st_too_many_ids",
         [] { return own_layout(R"([2],"data_offsets":[144,146])", R"([3],"data_offsets":[144,147])", "a\nb"); },
         {"ids", "expected 1", "found 2"},
         true},
        {"st_other_schema",
         [] { return safetensors_bytes(R"({"__metadata__":{"schema":"else"}}  )", ""); },
         {"schema"},
         true},
        {"st_no_tensors", [] { return safetensors_bytes("{}      ", ""); }, {"none"}},
        {"st_mixed_dimensions",
         [] {
             return safetensors_bytes(R"({"a":{"dtype":"F32","shape":[1,16],"data_offsets":[0,64]},)"
                                      R"("b":{"dtype":"F32","shape":[1,32],"data_offsets":[64,192]}})",
                                      raw(ramp(48)));
         },
         {"document 'b'", "16 dimensions", "found 32"}},
        {"st_tensor_of_integers",
         [] {
             return safetensors_bytes(R"({"a":{"dtype":"I32","shape":[1,16],"data_offsets":[0,64]}})", raw(ramp(16)));
         },
         {"tensor 'a'", "I32"}},
        {"st_name_with_line_break",
         [] {
             return safetensors_bytes(R"({"a\nb":{"dtype":"F32","shape":[1,16],"data_offsets":[0,64]}})",
                                      raw(ramp(16)));
         },
         {"line breaks"}},
        {"st_compressed",
         [] {
             return compressed({0, 4}, {0, 1, -1, 0});
         },
         {"compressed"}},
        {"st_owner_out_of_range",
         [] {
             return compressed({0, 4}, {0, 1, 2, 0});
         },
         {},
         true},
        {"st_source_offsets_lie",
         [] {
             return compressed({0, 5}, {0, 1, 1, 0});
         },
         {},
         true},
        {"st_owner_without_source_offsets",
         [] {
             std::string bytes = compressed({0, 4}, {0, 1, 1, 0});
             return bytes.replace(bytes.find("source_offsets"), 6, "sOurce");
         },
         {"source_offsets"},
         true},
        // .npy
        {"npy_cut_in_header", [] { return npy_of(2, 16).substr(0, 50); }, {"header length"}},
        {"npy_cut_in_data", [] { return npy_of(2, 16).substr(0, 200); }, {"expected 128 bytes"}},
        {"npy_trailing_bytes", [] { return npy_of(2, 16) + "x"; }, {"expected 128 bytes", "found 129"}},
        {"npy_objects", [] { return npy_bytes("|O", "2,", "xxxx"); }, {"descr", "'|O'"}},
        {"npy_fortran", [] { return npy_bytes("<f4", "2, 16", raw(ramp(32)), true); }, {"fortran_order", "True"}},
        {"npy_big_endian", [] { return npy_bytes(">f4", "2, 16", raw(ramp(32))); }, {"'>f4'"}},
        {"npy_integers", [] { return npy_bytes("<i4", "2, 16", raw(ramp(32))); }, {"I32"}},
        {"npy_text", [] { return npy_bytes("<U1", "2,", "xxxxxxxx"); }, {"text"}},
        {"npy_one_dimension", [] { return npy_bytes("<f4", "32,", raw(ramp(32))); }, {"2 or 3 dimensions"}},
        {"npy_shape_overflow", [] { return npy_bytes("<f4", "4611686018427387904, 16", raw(ramp(32))); }, {"absurd"}},
        {"npy_documents_of_nothing", [] { return npy_bytes("<f4", "1000000000000, 0, 16", ""); }, {"expected rows"}},
        {"npy_too_few_dimensions", [] { return npy_of(2, 8); }, {"16 to 4096", "found 8"}},
        {"npy_too_many_dimensions", [] { return npy_of(1, 4097); }, {"16 to 4096", "found 4097"}},
        {"npy_no_rows", [] { return npy_bytes("<f4", "0, 16", ""); }, {"no rows"}},
        {"npy_all_zero", [] { return npy_bytes("<f4", "1, 16", std::string(64, '\0')); }, {"1 zero rows"}},
        {"npy_infinity", with_nan, {"row 1", "inf", "column 4"}},
        {"npy_header_without_shape",
         [] { return "\x93NUMPY\x01\0"s + raw<std::uint16_t>({36}) + "{'descr':'<f4','fortran_order':False}"; },
         {"shape"}},
        // .npz
        {"npz_no_entries", [] { return "PK\x05\x06"s + std::string(18, '\0'); }, {"none"}},
        {"npz_cut",
         [] {
             return zip_bytes({{"a.npy", npy_of(2, 16)}}).substr(0, 100);
         },
         {"zip archive"}},
        {"npz_damaged",
         [] {
             return damaged_middle(zip_bytes({{"a.npy", npy_of(20, 16), true}}));
         },
         {"a.npy"}},
        {"npz_damaged_stored",
         [] {
             return damaged_middle(zip_bytes({{"a.npy", npy_of(20, 16)}}));
         },
         {"a.npy", "CRC"}},
        {"npz_other_entries",
         [] {
             return zip_bytes({{"readme.txt", "hello, reader of archives"}});
         },
         {"readme.txt"}},
        {"npz_array_cut",
         [] {
             return zip_bytes({{"a.npy", npy_of(2, 16).substr(0, 200)}});
         },
         {"a.npy", "128 bytes"}},
        {"npz_array_lies",
         [] {
             return zip_bytes({{"a.npy", npy_bytes("<f4", "9999999, 16", "xxxx"), true}});
         },
         {"a.npy"}},
        {"npz_size_lies",
         [] {
             return lie_about_size(zip_bytes({{"a.npy", npy_of(2, 16), true}}), 0x7FFFFFFF);
         },
         {"a.npy"}},
        {"npz_bomb",
         [] {
             const std::string zeros = npy_bytes("<f4", "5000000, 16", std::string(320'000'000, '\0'));
             return zip_bytes({{"a.npy", zeros, true}});
         },
         {"zip bomb"}},
        {"npz_mixed_dimensions",
         [] {
             return zip_bytes({{"a.npy", npy_of(2, 16)}, {"b.npy", npy_of(2, 32)}});
         },
         {"'b'", "16 dimensions"}},
        {"npz_same_name_twice",
         [] {
             std::string zip = zip_bytes({{"a.npy", npy_of(2, 16)}, {"b.npy", npy_of(2, 16)}});
             for (auto at = zip.find("b.npy"); at != std::string::npos; at = zip.find("b.npy")) zip[at] = 'a';
             return zip;
         },
         {}},
        {"npz_objects",
         [] {
             return zip_bytes({{"a.npy", npy_bytes("|O", "2,", "xxxxxxx")}});
         },
         {"'|O'"}},
        {"npz_wrong_offsets",
         [] {
             return zip_bytes(
                 {{"vectors.npy", npy_of(3, 16)}, {"offsets.npy", npy_bytes("<i8", "2,", raw<std::int64_t>({0, 9}))}});
         },
         {"offsets", "expected 3", "found 9"}},
        {"npz_wrong_ids",
         [] {
             return zip_bytes(
                 {{"a.npy", npy_of(3, 16)}, {"ids.npy", npy_bytes("<U1", "2,", raw<std::uint32_t>({'a', 'b'}))}});
         },
         {"ids", "expected 1", "found 2"}},
        // torch
        {"pt_calls_system",
         [] { return test::torch_bytes("cposix\nsystem\n(X\x04\0\0\0touchtR."s, {}); },
         {"'posix.system'", "not called"}},
        {"pt_calls_eval",
         [] {
             return test::torch_bytes(
                 "\x80\x04\x8c\x08"
                 "builtins\x8c\x04"
                 "eval\x93."s,
                 {});
         },
         {"'builtins.eval'"}},
        {"pt_new_object", [] { return test::torch_bytes(")\x81."s, {}); }, {"NEWOBJ"}},
        {"pt_pickle_cut", [] { return test::torch_bytes("\x80\x02]q"s, {}); }, {"pickle", "byte"}},
        {"pt_pickle_empty", [] { return test::torch_bytes("", {}); }, {"pickle"}},
        {"pt_deep_list",
         [] { return test::torch_bytes(std::string(100000, ']') + std::string(99999, 'a') + ".", {}); },
         {"nested"}},
        {"pt_endless_list", [] { return test::torch_bytes("]q\0h\0a."s, {}); }, {"nested"}},
        {"pt_doubling_lists",
         [] {
             std::string p = "]q\0"s;
             for (int i = 0; i < 40; ++i)
                 p += "](h"s + static_cast<char>(i) + "h" + static_cast<char>(i) + "eq" + static_cast<char>(i + 1);
             return test::torch_bytes(p + ".", {});
         },
         {"visits"}},
        {"pt_storage_missing", [] { return test::torch_bytes(pickle_of(2, "K\x20"), {}); }, {"archive/data/0"}},
        {"pt_storage_short",
         [] { return test::torch_bytes(pickle_of(2, "K\x20"), {std::string(60, 'x')}); },
         {"archive/data/0", "128 bytes"}},
        {"pt_tensor_past_storage",
         [] { return test::torch_bytes(pickle_of(3, "K\x20"), {raw(ramp(32))}); },
         {"within its storage"}},
        {"pt_storage_huge",
         [] { return test::torch_bytes(pickle_of(2, "\x8a\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"s), {raw(ramp(32))}); },
         {"absurd"}},
        {"pt_number", [] { return test::torch_bytes("K\x05."s, {}); }, {"expected a tensor"}},
        {"pt_empty_list", [] { return test::torch_bytes("]."s, {}); }, {"expected documents, found none"}},
        // JSON lines
        {"jsonl_cut", [] { return "{\"id\": \"a\", \"vectors\": [[1, 2"s; }, {"line 1"}},
        {"jsonl_no_vectors", [] { return "{\"id\": \"a\"}\n"s; }, {"line 1", "vectors"}},
        {"jsonl_text_in_vector", [] { return "{\"vectors\": [[1, \"x\"]]}\n"s; }, {"row 0", "text"}},
        {"jsonl_ragged", [] { return "{\"vectors\": [[1, 2], [1]]}\n"s; }, {"row 1", "2 numbers", "found 1"}},
        {"jsonl_list", [] { return "{}\n[]\n"s; }, {"line 1"}},
        {"jsonl_deep", [] { return "{\"vectors\": " + std::string(100000, '[') + "\n"; }, {"line 1", "deeper"}},
        {"jsonl_huge_number", [] { return "{\"vectors\": [[1e999]]}\n"s; }, {"line 1"}},
        {"jsonl_id_is_a_list", [] { return "{\"id\": [], \"vectors\": []}\n"s; }, {"id"}},
        {"jsonl_bad_utf8", [] { return "{\"id\": \"\xFF\", \"vectors\": []}\n"s; }, {"line 1"}},
        {"jsonl_bad_grid", [] { return "{\"vectors\": [], \"grid\": [1, -1]}\n"s; }, {"grid"}},
        {"jsonl_same_id_twice",
         [] {
             std::string v = "[[1";
             for (int i = 0; i < 15; ++i) v += ",0";
             return "{\"id\": \"a\", \"vectors\": " + v + "]]}\n{\"id\": \"a\", \"vectors\": " + v + "]]}\n";
         },
         {"'a' twice"}},
    };
    return files;
}

void expect_refusal(const test::CommandResult& result, const std::string& name, const std::vector<const char*>& words) {
    EXPECT_EQ(result.status, 1) << result.out << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, ::testing::StartsWith("marginmerge: "));
    EXPECT_THAT(result.err, ::testing::HasSubstr(name));
    for (const char* word : words) EXPECT_THAT(result.err, ::testing::HasSubstr(word));
}

class BadFiles : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreRefusedInOneLine) {
    const BadFile& bad = GetParam();
    const test::TemporaryDirectory directory;
    const auto path = directory / bad.name;
    test::write_file(path, bad.bytes());
    expect_refusal(test::run_cli("import " + path.string() + " -o " + (directory / "out").string()), bad.name,
                   bad.words);
    EXPECT_EQ(test::files_in(directory.path()), 1U);
    if (bad.ours) expect_refusal(test::run_cli("inspect " + path.string()), bad.name, {});
}

INSTANTIATE_TEST_SUITE_P(Named, BadFiles, ::testing::ValuesIn(bad_files()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace marginmerge
