#include "io/pickle.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/made_files.h"

namespace marginmerge {
namespace {

using namespace std::string_literals;
using test::expect_error;

Pickle unpickled(const std::string& bytes) { return parse_pickle(std::as_bytes(std::span(bytes)), "p"); }

void expect_refused(const std::string& bytes, std::initializer_list<const char*> words) {
    expect_error(ErrorCode::unsupported, words, [&] { unpickled(bytes); });
}
void expect_corrupt(const std::string& bytes, std::initializer_list<const char*> words) {
    expect_error(ErrorCode::corrupt, words, [&] { unpickled(bytes); });
}

// A storage reference and a tensor over it, as torch writes them.
std::string storage(const std::string& type, const std::string& key, std::uint8_t elements) {
    return "(X\x07\0\0\0storage"s + "ctorch\n" + type + "\nX\x01\0\0\0"s + key + "X\x03\0\0\0cpuK"s +
           static_cast<char>(elements) + "tQ";
}
std::string tensor(const std::string& of, std::uint8_t offset, std::uint8_t rows, std::uint8_t cols,
                   std::uint8_t stride) {
    const auto k = [](std::uint8_t v) { return "K"s + static_cast<char>(v); };
    return "ctorch._utils\n_rebuild_tensor_v2\n(" + of + k(offset) + k(rows) + k(cols) + "\x86"s + k(stride) + k(1) +
           "\x86\x89"s + "ccollections\nOrderedDict\n)RtR";
}

TEST(Pickle, PlainValues) {
    const std::string bytes = "\x80\x02}(X\x01\0\0\0aK\x05X\x01\0\0\0bJ\xFF\xFF\xFF\xFFu."s;
    const Pickle p = unpickled(bytes);  // names are views into the bytes
    const auto& items = p.items(p.root);
    ASSERT_EQ(items.size(), 4U);
    EXPECT_EQ(p.at(items[0]).view(), "a");
    EXPECT_EQ(p.at(items[1]).number, 5);
    EXPECT_EQ(p.at(items[3]).number, -1);
    EXPECT_EQ(unpickled("\x8a\x02\x00\x80."s).nodes.back().number, -32768);
    EXPECT_EQ(unpickled("\x8a\x03\x00\x80\x00."s).nodes.back().number, 32768);
}

TEST(Pickle, Tensor) {
    const Pickle p = unpickled(tensor(storage("HalfStorage", "0", 32), 4, 2, 3, 8) + ".");
    ASSERT_EQ(p.tensors.size(), 1U);
    EXPECT_EQ(p.tensors[0].offset, 4U);
    EXPECT_EQ(p.tensors[0].shape[1], 3U);
    EXPECT_EQ(p.tensors[0].stride[0], 8U);
    EXPECT_EQ(p.storages[0].type, DType::f16);
}

TEST(Pickle, TensorsStayInTheirStorage) {
    expect_corrupt(tensor(storage("FloatStorage", "0", 32), 4, 4, 8, 8) + ".", {"within its storage of 32"});
    expect_corrupt(tensor(storage("FloatStorage", "0", 32), 0, 100, 8, 0) + ".", {"expanded view"});
    unpickled(tensor(storage("FloatStorage", "0", 32), 0, 4, 8, 8) + ".");  // fits exactly
    expect_corrupt("(" + storage("FloatStorage", "0", 32) + storage("FloatStorage", "0", 31) + "t.",
                   {"'0'", "found two"});
}

TEST(Pickle, NothingIsCalled) {
    expect_refused("cos\nsystem\n(X\x02\0\0\0lstR."s, {"p: pickle", "'os.system'", "not called"});
    expect_refused(
        "\x80\x04\x8c\x08"
        "builtins\x8c\x04"
        "eval\x93."s,
        {"'builtins.eval'"});
    expect_refused("(X\x01\0\0\0xios\nsystem\n."s, {"INST"});
    expect_refused(")\x81."s, {"NEWOBJ"});
    expect_refused("(o."s, {"OBJ"});
    expect_refused("\x82\x01."s, {"EXT"});
    expect_refused("ctorch\nload\n."s, {"'torch.load'"});
    expect_refused("ctorch.storage\n_load_from_bytes\n."s, {"_load_from_bytes"});
    expect_corrupt("ctorch\nFloatStorage\n)R."s, {"storage type being called"});
    expect_corrupt("K\x01)R."s, {"known function"});
    expect_corrupt("]}b."s, {"dict"});  // BUILD on a list
}

TEST(Pickle, DamageIsNamed) {
    expect_corrupt("", {"expected 1 more bytes"});
    expect_corrupt("K", {"expected 1 more bytes"});
    expect_corrupt(".", {"stack"});
    expect_corrupt("t.", {"mark"});
    expect_corrupt("h\x05.", {"remembered value 5"});
    expect_corrupt("X\xFF\xFF\xFF\xFF.", {"more bytes"});
    expect_corrupt(
        "K\x01K\x02"
        "a.",
        {"list"});
    expect_corrupt("}K\x01K\x02K\x03u.", {"mark"});
    expect_corrupt("}(K\x01u.", {"odd number"});
    expect_corrupt("\x80\x09.", {"protocol"});
    expect_corrupt("cmodule", {"line"});
    expect_refused("\xFE.", {"0xfe"});
}

TEST(Pickle, CyclesNeitherLeakNorLoop) {
    const Pickle p = unpickled("]q\0h\0a."s);  // a list that holds itself
    EXPECT_EQ(p.items(p.root)[0], p.root);
}

}  // namespace
}  // namespace marginmerge
