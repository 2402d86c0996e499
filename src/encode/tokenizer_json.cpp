// tokenizer.json, the format of the tokenizers library: the parts that WordPiece and byte-level
// BPE models use. What is not understood is an error, never ignored: a wrong token is worse than none.
#include <algorithm>

#include "core/fail.h"
#include "encode/byte_bpe.h"
#include "encode/json_fields.h"
#include "encode/wordpiece.h"

namespace marginmerge {

namespace {

using nlohmann::json;

constexpr std::size_t most_tokens = 4'000'000;

const json* member(const json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string type_of(const json& object, const std::string& where) {
    const json* type = member(object, "type");
    if (type == nullptr || !type->is_string())
        fail(ErrorCode::corrupt, "{}.type: expected a string, found none", where);
    return type->get<std::string>();
}

bool flag(const json& object, const char* name, bool fallback) {
    const json* value = member(object, name);
    return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

std::vector<std::string> read_vocabulary(const json& model, const std::string& source) {
    const json* vocabulary = member(model, "vocab");
    if (vocabulary == nullptr || !vocabulary->is_object())
        fail(ErrorCode::corrupt, "{}: model.vocab: expected an object of tokens, found none", source);
    if (vocabulary->size() > most_tokens) fail(ErrorCode::unsupported, "{}: model.vocab: too many tokens", source);
    std::vector<std::string> out;
    for (const auto& [token, id] : vocabulary->items()) {
        // Ids may have gaps, but no file needs ids far beyond its number of tokens.
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= 2 * vocabulary->size() + 65536)
            fail(ErrorCode::corrupt, "{}: model.vocab: '{}': expected a token id, found {}", source, token, id.dump());
        const auto i = id.get<std::size_t>();
        if (i >= out.size()) out.resize(i + 1);
        out[i] = token;
    }
    return out;
}

std::map<std::string, std::int32_t> read_specials(const json& root, const TokenizerCard& card,
                                                  const std::string& source) {
    std::map<std::string, std::int32_t> out = card.added_tokens;
    const json* added = member(root, "added_tokens");
    if (added == nullptr) return out;
    if (!added->is_array()) fail(ErrorCode::corrupt, "{}: added_tokens: expected a list", source);
    for (const auto& token : *added) {
        const json* content = member(token, "content");
        const json* id = member(token, "id");
        if (content == nullptr || id == nullptr || !content->is_string() || !id->is_number_unsigned() ||
            id->get<std::uint64_t>() > INT32_MAX)
            fail(ErrorCode::corrupt, "{}: added_tokens: expected id and content, found {}", source,
                 token.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
        if (!content->get_ref<const std::string&>().empty())
            out.emplace(content->get<std::string>(), id->get<std::int32_t>());
    }
    return out;
}

std::unique_ptr<Tokenizer> wordpiece(const json& root, const json& model, const TokenizerCard& card,
                                     const std::string& source) {
    WordPiece::Rules rules;
    if (const json* normaliser = member(root, "normalizer")) {
        const std::string type = type_of(*normaliser, source + ": normalizer");
        if (type != "BertNormalizer")
            fail(ErrorCode::unsupported, "{}: normalizer: expected BertNormalizer, found {}", source, type);
        rules.clean = flag(*normaliser, "clean_text", true);
        rules.ideographs = flag(*normaliser, "handle_chinese_chars", true);
        rules.lowercase = flag(*normaliser, "lowercase", true);
        rules.strip_accents = flag(*normaliser, "strip_accents", rules.lowercase);
    } else {
        rules.clean = rules.ideographs = rules.lowercase = rules.strip_accents = false;
    }
    if (const json* splitter = member(root, "pre_tokenizer")) {
        const std::string type = type_of(*splitter, source + ": pre_tokenizer");
        if (type != "BertPreTokenizer")
            fail(ErrorCode::unsupported, "{}: pre_tokenizer: expected BertPreTokenizer, found {}", source, type);
    }
    if (const json* unknown = member(model, "unk_token"); unknown != nullptr && unknown->is_string())
        rules.unknown = unknown->get<std::string>();
    if (const json* prefix = member(model, "continuing_subword_prefix"); prefix != nullptr && prefix->is_string())
        rules.continuation = prefix->get<std::string>();
    if (const json* longest = member(model, "max_input_chars_per_word");
        longest != nullptr && longest->is_number_unsigned())
        rules.longest_word = std::min<std::size_t>(longest->get<std::size_t>(), 10000);
    return std::make_unique<WordPiece>(read_vocabulary(model, source), std::move(rules),
                                       read_specials(root, card, source), source);
}

void add_splitter(const json& rule, ByteBpe::Parts& parts, const std::string& source, int depth = 0) {
    const std::string type = type_of(rule, source + ": pre_tokenizer");
    if (type == "Sequence" && depth == 0) {
        const json* list = member(rule, "pretokenizers");
        if (list == nullptr || !list->is_array() || list->size() > 16)
            fail(ErrorCode::corrupt, "{}: pre_tokenizer.pretokenizers: expected a short list", source);
        for (const auto& inner : *list) add_splitter(inner, parts, source, depth + 1);
    } else if (type == "Split") {
        const json* pattern = member(rule, "pattern");
        const json* regex = pattern == nullptr ? nullptr : member(*pattern, "Regex");
        const json* behaviour = member(rule, "behavior");
        if (regex == nullptr || !regex->is_string() || flag(rule, "invert", false) || behaviour == nullptr ||
            !behaviour->is_string() || behaviour->get<std::string>() != "Isolated")
            fail(ErrorCode::unsupported, "{}: pre_tokenizer: expected an isolating Split by Regex", source);
        parts.splitters.push_back(regex_splitter(regex->get<std::string>(), source));
    } else if (type == "Digits") {
        parts.splitters.push_back(digit_splitter(flag(rule, "individual_digits", false)));
    } else if (type == "ByteLevel") {
        parts.prefix_space = flag(rule, "add_prefix_space", true);
        if (flag(rule, "use_regex", true)) parts.splitters.push_back(regex_splitter(gpt2_pattern, source));
    } else {
        fail(ErrorCode::unsupported, "{}: pre_tokenizer: expected Split, Digits or ByteLevel, found {}", source, type);
    }
}

void read_normaliser(const json& root, ByteBpe::Parts& parts, const std::string& source) {
    const json* normaliser = member(root, "normalizer");
    if (normaliser == nullptr) return;
    const std::string type = type_of(*normaliser, source + ": normalizer");
    if (type == "NFC")
        parts.normaliser = ByteBpe::Normaliser::nfc;
    else if (type == "NFKC")
        parts.normaliser = ByteBpe::Normaliser::nfkc;
    else
        fail(ErrorCode::unsupported, "{}: normalizer: expected NFC or NFKC, found {}", source, type);
}

void read_merges(const json& model, ByteBpe::Parts& parts, const std::string& source) {
    const json* merges = member(model, "merges");
    if (merges == nullptr || !merges->is_array())
        fail(ErrorCode::corrupt, "{}: model.merges: expected a list, found none", source);
    if (merges->size() > most_tokens) fail(ErrorCode::unsupported, "{}: model.merges: too many", source);
    std::unordered_map<std::string_view, std::int32_t> ids;
    for (std::size_t i = 0; i < parts.names.size(); ++i) ids.emplace(parts.names[i], static_cast<std::int32_t>(i));
    for (const auto& merge : *merges) {
        std::string left, right;
        if (merge.is_string()) {
            const auto& text = merge.get_ref<const std::string&>();
            const auto space = text.find(' ');
            if (space != std::string::npos) {
                left = text.substr(0, space);
                right = text.substr(space + 1);
            }
        } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
            left = merge[0].get<std::string>();
            right = merge[1].get<std::string>();
        }
        const std::string both = left + right;
        const auto a = ids.find(left), b = ids.find(right), ab = ids.find(both);
        if (a == ids.end() || b == ids.end() || ab == ids.end())
            fail(ErrorCode::corrupt, "{}: model.merges: entry {}: expected two tokens whose sum is a token, found {}",
                 source, parts.merges.size(), merge.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80));
        parts.merges.emplace_back(a->second, b->second);
        parts.merged.push_back(ab->second);
    }
}

std::unique_ptr<Tokenizer> byte_bpe(const json& root, const json& model, const TokenizerCard& card,
                                    const std::string& source) {
    if (flag(model, "byte_fallback", false))
        fail(ErrorCode::unsupported, "{}: model.byte_fallback: use the SentencePiece file of this tokenizer", source);
    ByteBpe::Parts parts;
    parts.specials = read_specials(root, card, source);
    parts.names = read_vocabulary(model, source);
    for (const auto& name : parts.names) {
        const bool special = parts.specials.count(name) != 0;
        parts.vocabulary.push_back(special ? std::string() : byte_level_to_bytes(name).value_or(std::string()));
    }
    read_normaliser(root, parts, source);
    const json* splitter = member(root, "pre_tokenizer");
    if (splitter == nullptr) fail(ErrorCode::unsupported, "{}: pre_tokenizer: expected ByteLevel, found none", source);
    add_splitter(*splitter, parts, source);
    parts.ignore_merges = flag(model, "ignore_merges", false);
    read_merges(model, parts, source);
    return std::make_unique<ByteBpe>(std::move(parts));
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const TokenizerCard& card,
                                                const std::string& source) {
    const json root = parse_json(text, source);
    const json* model = member(root, "model");
    if (model == nullptr) fail(ErrorCode::corrupt, "{}: model: expected an object, found none", source);
    const json* type = member(*model, "type");
    const std::string kind = type != nullptr && type->is_string()  ? type->get<std::string>()
                             : member(*model, "merges") != nullptr ? "BPE"
                                                                   : "WordPiece";
    const bool wants_wordpiece = card.type == TokenizerCard::Type::wordpiece;
    if (kind == "WordPiece" && wants_wordpiece) return wordpiece(root, *model, card, source);
    if (kind == "BPE" && card.type == TokenizerCard::Type::bpe) return byte_bpe(root, *model, card, source);
    fail(ErrorCode::unsupported, "{}: model.type: the card expects {}, found {}", source,
         wants_wordpiece ? "WordPiece" : "BPE", kind);
}

}  // namespace marginmerge
