#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge {

/// One code point and the bytes of the source text it came from.
struct CodePoint {
    char32_t value = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

/// Decodes UTF-8; a byte that is not part of a valid sequence becomes U+FFFD.
std::vector<CodePoint> decode_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t c);
/// The same text with every invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

bool is_letter(char32_t c);
bool is_mark(char32_t c);     ///< category Mn
bool is_control(char32_t c);  ///< categories C*, but not tab, line feed, carriage return
bool is_space(char32_t c);
bool is_punctuation(char32_t c);  ///< categories P*, and the ASCII symbols
bool is_cjk(char32_t c);          ///< ideographs that BERT sets apart
bool is_digit(char32_t c);        ///< categories N*
char32_t to_lower(char32_t c);

/// Canonical decomposition of one code point (NFD).
void decompose(char32_t c, std::vector<char32_t>& out);
/// NFC or NFKC of a whole text.
std::string compose(std::string_view text, bool compatibility);

}  // namespace marginmerge
