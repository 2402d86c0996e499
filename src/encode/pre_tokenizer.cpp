#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "core/fail.h"
#include "encode/byte_bpe.h"
#include "encode/unicode.h"

namespace marginmerge {

const char* const gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

class RegexSplitter final : public PreTokenizer {
public:
    RegexSplitter(const std::string& pattern, const std::string& source) : source_(source) {
        int error = 0;
        PCRE2_SIZE offset = 0;
        if (pattern.size() > 10000) fail(ErrorCode::unsupported, "{}: pattern: longer than 10,000 bytes", source);
        code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &error,
                                  &offset, nullptr));
        if (!code_) {
            std::array<PCRE2_UCHAR, 200> message{};
            pcre2_get_error_message(error, message.data(), message.size());
            fail(ErrorCode::corrupt, "{}: pattern: {} at {}", source, reinterpret_cast<const char*>(message.data()),
                 offset);
        }
        // A pattern from a hostile file must end: both limits turn a blow-up into "no match".
        limits_.reset(pcre2_match_context_create(nullptr));
        pcre2_set_match_limit(limits_.get(), 1'000'000);
        pcre2_set_heap_limit(limits_.get(), 64 * 1024);
    }

    void split(std::string_view text, std::uint32_t begin, std::uint32_t end,
               std::vector<std::pair<std::uint32_t, std::uint32_t>>& out) const override {
        const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
            pcre2_match_data_create_from_pattern(code_.get(), nullptr), &pcre2_match_data_free);
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() + begin);
        const PCRE2_SIZE length = end - begin;
        PCRE2_SIZE at = 0;      // where the search goes on
        PCRE2_SIZE unused = 0;  // where the text not yet given out starts
        while (at < length) {
            const int found = pcre2_match(code_.get(), subject, length, at, 0, match.get(), limits_.get());
            if (found < 0) break;
            const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
            if (range[1] <= range[0] || range[0] < at) {  // an empty match: look one byte further
                ++at;
                continue;
            }
            if (range[0] > unused) push(out, begin, unused, range[0]);
            push(out, begin, range[0], range[1]);
            at = unused = range[1];
        }
        if (unused < length) push(out, begin, unused, length);
    }

private:
    static void push(std::vector<std::pair<std::uint32_t, std::uint32_t>>& out, std::uint32_t base, PCRE2_SIZE a,
                     PCRE2_SIZE b) {
        out.emplace_back(base + static_cast<std::uint32_t>(a), base + static_cast<std::uint32_t>(b));
    }
    struct Free {
        void operator()(pcre2_code* p) const { pcre2_code_free(p); }
        void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
    };
    std::string source_;
    std::unique_ptr<pcre2_code, Free> code_;
    std::unique_ptr<pcre2_match_context, Free> limits_;
};

class DigitSplitter final : public PreTokenizer {
public:
    explicit DigitSplitter(bool individual) : individual_(individual) {}
    void split(std::string_view text, std::uint32_t begin, std::uint32_t end,
               std::vector<std::pair<std::uint32_t, std::uint32_t>>& out) const override {
        std::uint32_t first = begin;
        bool digits = false;
        for (const auto& c : decode_utf8(text.substr(begin, end - begin))) {
            const bool digit = is_digit(c.value);
            const std::uint32_t at = begin + c.begin;
            if (at > first && (digit != digits || (digit && individual_))) {
                out.emplace_back(first, at);
                first = at;
            }
            digits = digit;
        }
        if (end > first) out.emplace_back(first, end);
    }

private:
    bool individual_;
};

}  // namespace

std::unique_ptr<PreTokenizer> regex_splitter(const std::string& pattern, const std::string& source) {
    return std::make_unique<RegexSplitter>(pattern, source);
}

std::unique_ptr<PreTokenizer> digit_splitter(bool individual) { return std::make_unique<DigitSplitter>(individual); }

}  // namespace marginmerge
