#include "encode/byte_bpe.h"

#include <algorithm>
#include <queue>

#include "encode/unicode.h"

namespace marginmerge {

namespace {

std::uint64_t pair_key(std::int32_t a, std::int32_t b) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

/// Printable bytes stand for themselves, the other 68 for U+0100, U+0101, ... in byte order.
std::array<int, 512> stand_ins() {
    std::array<int, 512> byte_of{};
    byte_of.fill(-1);
    int next = 256;
    for (int b = 0; b < 256; ++b) {
        const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        byte_of[static_cast<std::size_t>(printable ? b : next++)] = b;
    }
    return byte_of;
}

struct Symbol {
    std::int32_t id;
    std::int32_t previous, next;  // -1 at the ends
    std::uint32_t begin, end;
};

struct Candidate {
    std::int32_t rank, left, right;
    std::int32_t left_id, right_id;  // to notice that one side has changed since
    bool operator<(const Candidate& o) const {
        return rank != o.rank ? rank > o.rank : left > o.left;  // lowest rank first, then leftmost
    }
};

}  // namespace

std::optional<std::string> byte_level_to_bytes(std::string_view text) {
    static const auto byte_of = stand_ins();
    std::string out;
    for (const auto& c : decode_utf8(text)) {
        if (c.value >= byte_of.size() || byte_of[c.value] < 0) return std::nullopt;
        out.push_back(static_cast<char>(byte_of[c.value]));
    }
    return out;
}

ByteBpe::ByteBpe(Parts parts) : parts_(std::move(parts)) {
    specials_ = parts_.specials;
    byte_ids_.fill(-1);
    ids_.reserve(parts_.vocabulary.size());
    for (std::size_t i = 0; i < parts_.vocabulary.size(); ++i) {
        const auto& token = parts_.vocabulary[i];
        if (token.empty()) continue;
        const auto id = static_cast<std::int32_t>(i);
        ids_.emplace(token, id);
        if (token.size() == 1) byte_ids_[static_cast<unsigned char>(token[0])] = id;
    }
    merges_.reserve(parts_.merges.size());
    for (std::size_t r = 0; r < parts_.merges.size(); ++r) {
        merges_.emplace(pair_key(parts_.merges[r].first, parts_.merges[r].second),
                        Merge{static_cast<std::int32_t>(r), parts_.merged[r]});
    }
    parts_.merges.clear();
    parts_.merged.clear();
}

std::string ByteBpe::piece(std::int32_t id) const {
    for (const auto& [name, special] : specials_) {
        if (special == id) return name;
    }
    if (id < 0 || static_cast<std::size_t>(id) >= parts_.vocabulary.size()) return {};
    const auto i = static_cast<std::size_t>(id);
    return parts_.vocabulary[i].empty() ? parts_.names[i] : parts_.vocabulary[i];
}

void ByteBpe::encode_stretch(std::string_view text, std::uint32_t begin, std::uint32_t end,
                             std::vector<Token>& out) const {
    if (parts_.ignore_merges) {
        const auto found = ids_.find(std::string(text.substr(begin, end - begin)));
        if (found != ids_.end()) {
            out.push_back({found->second, begin, end});
            return;
        }
    }
    std::vector<Symbol> symbols;
    for (std::uint32_t i = begin; i < end; ++i) {
        const std::int32_t id = byte_ids_[static_cast<unsigned char>(text[i])];
        if (id < 0) continue;  // a vocabulary without this byte cannot say it
        const auto n = static_cast<std::int32_t>(symbols.size());
        symbols.push_back({id, n - 1, -1, i, i + 1});
        if (n > 0) symbols[static_cast<std::size_t>(n - 1)].next = n;
    }
    std::priority_queue<Candidate> queue;
    const auto consider = [&](std::int32_t left, std::int32_t right) {
        if (left < 0 || right < 0) return;
        const auto a = symbols[static_cast<std::size_t>(left)].id, b = symbols[static_cast<std::size_t>(right)].id;
        const auto found = merges_.find(pair_key(a, b));
        if (found != merges_.end()) queue.push({found->second.rank, left, right, a, b});
    };
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
        consider(static_cast<std::int32_t>(i), static_cast<std::int32_t>(i + 1));
    while (!queue.empty()) {
        const Candidate c = queue.top();
        queue.pop();
        Symbol& left = symbols[static_cast<std::size_t>(c.left)];
        Symbol& right = symbols[static_cast<std::size_t>(c.right)];
        if (left.id != c.left_id || right.id != c.right_id || left.next != c.right) continue;
        left.id = merges_.find(pair_key(c.left_id, c.right_id))->second.id;
        left.end = right.end;
        left.next = right.next;
        right.id = -1;
        if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = c.left;
        consider(left.previous, c.left);
        consider(c.left, left.next);
    }
    for (const auto& s : symbols) {
        if (s.id >= 0) out.push_back({s.id, s.begin, s.end});
    }
}

std::vector<Token> ByteBpe::encode_normalised(std::string_view text) const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stretches{{0, static_cast<std::uint32_t>(text.size())}}, next;
    for (const auto& splitter : parts_.splitters) {
        next.clear();
        for (const auto& [begin, end] : stretches) splitter->split(text, begin, end, next);
        stretches.swap(next);
    }
    std::vector<Token> out;
    for (const auto& [begin, end] : stretches) {
        if (end > begin) encode_stretch(text, begin, end, out);
    }
    return out;
}

std::vector<Token> ByteBpe::encode(std::string_view text) const {
    if (text.empty()) return {};
    const bool shift = parts_.prefix_space && text.front() != ' ';
    if (parts_.normaliser == Normaliser::none && !shift) return encode_normalised(text);
    std::string changed = shift ? " " : "";
    changed += parts_.normaliser == Normaliser::none ? std::string(text)
                                                     : compose(valid_utf8(text), parts_.normaliser == Normaliser::nfkc);
    std::vector<Token> out = encode_normalised(changed);
    const std::uint32_t extra = shift ? 1 : 0;
    const auto size = static_cast<std::uint32_t>(text.size());
    const bool same = changed.compare(extra, std::string::npos, text) == 0;
    // Where composing changed the length, places are scaled: exact positions only matter for
    // drawing, and only text that was not composed already is affected.
    const double scale =
        same ? 1.0 : static_cast<double>(size) / std::max<double>(1, static_cast<double>(changed.size() - extra));
    for (auto& t : out) {
        const auto place = [&](std::uint32_t p) {
            return std::min(size, static_cast<std::uint32_t>(scale * (p > extra ? p - extra : 0)));
        };
        t.begin = place(t.begin);
        t.end = place(t.end);
    }
    return out;
}

}  // namespace marginmerge
