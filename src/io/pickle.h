#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace marginmerge {

/// What a torch file's pickle may describe: tensors over storages, plain containers, text and
/// numbers. Nodes live in one arena and refer to each other by index, so shared and even cyclic
/// structures neither leak nor recurse here; walkers bound their own depth.
struct Pickle {
    enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dict, tensor, storage, callable };
    using Ref = std::uint32_t;

    struct Node {
        std::int64_t number = 0;  ///< boolean and integer: value; real: unused
        const char* text = nullptr;
        std::uint32_t length = 0;  ///< of text
        std::uint32_t items =
            0;  ///< list (also tuples) and dict (key, value, ...): index into lists; tensor, storage: index
        Kind kind = Kind::none;
        std::string_view view() const { return {text, length}; }
    };
    struct Storage {
        DType type = DType::f32;
        std::string key;  ///< name of the archive entry below data/
        std::uint64_t elements = 0;
    };
    static constexpr std::size_t max_dimensions = 4;
    struct Tensor {
        std::uint32_t storage = 0;
        std::uint32_t dimensions = 0;
        std::uint64_t offset = 0;  ///< in elements
        std::array<std::uint64_t, max_dimensions> shape{};
        std::array<std::uint64_t, max_dimensions> stride{};  ///< in elements
    };

    std::vector<Node> nodes;
    std::vector<std::vector<Ref>> lists;
    std::vector<Storage> storages;
    std::vector<Tensor> tensors;
    Ref root = 0;

    const Node& at(Ref ref) const { return nodes[ref]; }
    const std::vector<Ref>& items(const Node& node) const { return lists[node.items]; }
    const std::vector<Ref>& items(Ref ref) const { return items(nodes[ref]); }
};

/// Reads a pickle that can do nothing but build such values. A reference to any other function or
/// class is an Error(unsupported) that names it; nothing is ever called. Tensors are checked to lie
/// within their storages and to have no more elements than those. Text points into `bytes`.
Pickle parse_pickle(std::span<const std::byte> bytes, const std::string& source);

}  // namespace marginmerge
