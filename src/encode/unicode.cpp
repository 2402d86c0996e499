#include "encode/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace marginmerge {

namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

constexpr char32_t replacement = 0xFFFD;

}  // namespace

std::vector<CodePoint> decode_utf8(std::string_view text) {
    std::vector<CodePoint> out;
    out.reserve(text.size());
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    std::size_t at = 0;
    while (at < text.size()) {
        utf8proc_int32_t c = -1;
        const utf8proc_ssize_t used = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
        const std::size_t length = used > 0 ? static_cast<std::size_t>(used) : 1;
        out.push_back({used > 0 ? static_cast<char32_t>(c) : replacement, static_cast<std::uint32_t>(at),
                       static_cast<std::uint32_t>(at + length)});
        at += length;
    }
    return out;
}

void append_utf8(std::string& out, char32_t c) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(n));
}

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const auto& c : decode_utf8(text)) append_utf8(out, c.value);
    return out;
}

bool is_letter(char32_t c) {
    const auto k = category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_control(char32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    const auto k = category(c);
    return k == UTF8PROC_CATEGORY_CN || (k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO);
}

bool is_space(char32_t c) {
    if (c == ' ' || (c >= 9 && c <= 13) || c == 0x85) return true;
    const auto k = category(c);
    return k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_ZP;
}

bool is_punctuation(char32_t c) {
    if (c < 128) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    const auto k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool is_cjk(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_digit(char32_t c) {
    const auto k = category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

char32_t to_lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }

void decompose(char32_t c, std::vector<char32_t>& out) {
    std::array<utf8proc_int32_t, 32> parts{};
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                           static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
    if (n <= 0 || n > static_cast<utf8proc_ssize_t>(parts.size())) {
        out.push_back(c);
        return;
    }
    for (utf8proc_ssize_t i = 0; i < n; ++i) out.push_back(static_cast<char32_t>(parts[static_cast<std::size_t>(i)]));
}

std::string compose(std::string_view text, bool compatibility) {
    utf8proc_uint8_t* made = nullptr;
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
    const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                static_cast<utf8proc_ssize_t>(text.size()), &made, options);
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, std::free);
    if (n < 0) return std::string(text);
    return std::string(reinterpret_cast<const char*>(made), static_cast<std::size_t>(n));
}

}  // namespace marginmerge
