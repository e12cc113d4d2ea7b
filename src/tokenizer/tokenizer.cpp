// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/tokenizer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tokenizer/sentence_pieces.hpp"

namespace carina::tokenizer {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxTokens = 1 << 21;

/// The byte that each character of byte-level vocabularies represents: printable Latin-1 characters represent
/// themselves, those from U+0100 on the remaining bytes in order.
std::unordered_map<uint32_t, uint8_t> byteOfCharacter() {
  std::unordered_map<uint32_t, uint8_t> bytes;
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool visible = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    bytes.emplace(visible ? b : next++, static_cast<uint8_t>(b));
  }
  return bytes;
}

/// The bytes of a token as spelt in the vocabulary (UTF-8 of one or two bytes per character).
Result<std::string> bytesOf(std::string_view text) {
  static const std::unordered_map<uint32_t, uint8_t> kBytes = byteOfCharacter();
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    auto character = static_cast<uint32_t>(static_cast<uint8_t>(text[i]));
    const bool two = (character & 0xe0) == 0xc0 && i + 1 < text.size();
    if (two) character = (character & 0x1f) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3fu);
    const auto byte = kBytes.find(character);
    if (byte == kBytes.end() || (character >= 0x80 && !two))
      return fail(Code::Damaged, "has a character that does not represent a byte");
    bytes.push_back(static_cast<char>(byte->second));
  }
  return bytes;
}

const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text(const Json& object, const char* name) {
  const Json* value = member(object, name);
  return value && value->is_string() ? value->get<std::string>() : "";
}

bool isSet(const Json& object, const char* name, bool otherwise = false) {
  const Json* value = member(object, name);
  return value && value->is_boolean() ? value->get<bool>() : otherwise;
}

constexpr const char* kByteLevel = "use a byte-level BPE tokenizer (GPT-2, SmolLM2, ...)";

}  // namespace

class TokenizerReader {
 public:
  Result<Tokenizer> run(const Json& root) {
    if (!root.is_object())
      return fail(Code::Damaged, "is not an object").withRemedy("give the tokenizer.json of a model");
    CARINA_RETURN_IF_ERROR(checkKind(root));
    const Json& model = root.at("model");
    CARINA_RETURN_IF_ERROR(vocabulary(model));
    CARINA_RETURN_IF_ERROR(addedTokens(root));
    CARINA_RETURN_IF_ERROR(merges(model));
    CARINA_RETURN_IF_ERROR(words(root));
    CARINA_RETURN_IF_ERROR(processor(root));
    return std::move(result_);
  }

 private:
  static Status checkKind(const Json& root) {
    const Json* model = member(root, "model");
    if (!model || !model->is_object())
      return fail(Code::Damaged, "is missing").at("model").withRemedy(kDamagedRemedy);
    if (const std::string type = text(*model, "type"); type != "BPE")
      return fail(Code::WrongKind, "is '{}'", type).at("model.type").withRemedy(kByteLevel);
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text(*model, name).empty())
        return fail(Code::WrongKind, "is set").at(std::string("model.") + name).withRemedy(kByteLevel);
    }
    for (const char* name : {"byte_fallback", "ignore_merges"}) {
      if (isSet(*model, name))
        return fail(Code::WrongKind, "is set").at(std::string("model.") + name).withRemedy(kByteLevel);
    }
    if (member(root, "normalizer")) {
      return fail(Code::WrongKind, "is not supported").at("normalizer").withRemedy(kByteLevel);
    }
    return {};
  }

  Status define(const std::string& name, const Json& id, std::string bytes, const char* where) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= kMaxTokens)
      return fail(Code::Damaged, "the id of '{}' is not a number from 0 to {}", name, kMaxTokens - 1)
          .at(where);
    const auto token = id.get<int64_t>();
    if (token >= result_.size()) {
      result_.bytes_.resize(static_cast<size_t>(token) + 1);
      result_.known_.resize(static_cast<size_t>(token) + 1, false);
      result_.ends_.resize(static_cast<size_t>(token) + 1, false);
    }
    if (result_.known_[static_cast<size_t>(token)])
      return fail(Code::Damaged, "two tokens have the id {}", token).at(where);
    result_.known_[static_cast<size_t>(token)] = true;
    result_.bytes_[static_cast<size_t>(token)] = std::move(bytes);
    return {};
  }

  Status vocabulary(const Json& model) {
    const Json* vocab = member(model, "vocab");
    if (!vocab || !vocab->is_object() || vocab->empty())
      return fail(Code::Damaged, "is missing").at("model.vocab").withRemedy(kDamagedRemedy);
    // The size of the file bounds the largest id: few tokens with large ids are not a vocabulary.
    for (const auto& [name, id] : vocab->items()) {
      if (id.is_number_integer() && id.get<int64_t>() > static_cast<int64_t>(16 * vocab->size() + 4096))
        return fail(Code::Damaged, "the id of '{}' is far beyond the number of tokens", name)
            .at("model.vocab");
      ids_.emplace(name, id);
    }
    return {};
  }

  /// Special tokens, and then the rest of the vocabulary.
  Status addedTokens(const Json& root) {
    const Json* added = member(root, "added_tokens");
    if (added && !added->is_array())
      return fail(Code::Damaged, "is not a list").at("added_tokens").withRemedy(kDamagedRemedy);
    for (const Json& entry : added ? *added : Json::array()) {
      const std::string name = text(entry, "content");
      const Json* id = member(entry, "id");
      if (name.empty() || !id) return fail(Code::Damaged, "an entry has no content or id").at("added_tokens");
      for (const char* option : {"lstrip", "rstrip", "single_word"}) {
        if (isSet(entry, option))
          return fail(Code::Damaged, "'{}' has the unsupported option {}", name, option)
              .at("added_tokens")
              .withRemedy("leave the option out: tokens are matched exactly as written");
      }
      if (id->is_number_integer() &&
          id->get<int64_t>() > static_cast<int64_t>(16 * (ids_.size() + added->size()) + 4096))
        return fail(Code::Damaged, "the id of '{}' is far beyond the number of tokens", name)
            .at("added_tokens");
      ids_.erase(name);
      CARINA_RETURN_IF_ERROR(define(name, *id, "", "added_tokens"));
      result_.special_.push_back({name, id->get<int64_t>()});
      result_.ends_[static_cast<size_t>(id->get<int64_t>())] = Tokenizer::namesAnEnd(name);
    }
    std::stable_sort(result_.special_.begin(), result_.special_.end(),
                     [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
    result_.ofByte_.fill(-1);
    for (const auto& [name, id] : ids_) {
      auto bytes = bytesOf(name);
      if (!bytes)
        return fail(Code::Damaged, "'{}' {}", name, bytes.error().diagnostics().front().message)
            .at("model.vocab")
            .withRemedy(kByteLevel);
      CARINA_RETURN_IF_ERROR(define(name, id, *bytes, "model.vocab"));
      if (bytes->size() == 1) result_.ofByte_[static_cast<uint8_t>((*bytes)[0])] = id.get<int64_t>();
    }
    for (size_t b = 0; b < result_.ofByte_.size(); ++b) {
      if (result_.ofByte_[b] < 0)
        return fail(Code::Damaged, "has no token for the byte {:#04x}", b)
            .at("model.vocab")
            .withRemedy(kByteLevel);
    }
    return {};
  }

  Status merges(const Json& model) {
    const Json* list = member(model, "merges");
    if (!list || !list->is_array())
      return fail(Code::Damaged, "is missing").at("model.merges").withRemedy(kDamagedRemedy);
    int64_t rank = 0;
    for (const Json& entry : *list) {
      std::string left, right;
      if (entry.is_string()) {
        const auto pair = entry.get<std::string>();
        const size_t blank = pair.find(' ');
        if (blank != std::string::npos) left = pair.substr(0, blank), right = pair.substr(blank + 1);
      } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        left = entry[0].get<std::string>(), right = entry[1].get<std::string>();
      }
      const auto a = ids_.find(left), b = ids_.find(right), whole = ids_.find(left + right);
      if (a == ids_.end() || b == ids_.end() || whole == ids_.end()) {
        return fail(Code::Damaged, "entry {} does not merge two tokens of the vocabulary into a third", rank)
            .at("model.merges")
            .withRemedy(kDamagedRemedy);
      }
      result_.merges_.try_emplace({a->second.get<int64_t>(), b->second.get<int64_t>()},
                                  Merge{rank++, whole->second.get<int64_t>()});
    }
    return {};
  }

  Status words(const Json& root) {
    const Json* given = member(root, "pre_tokenizer");
    if (!given) return fail(Code::Damaged, "is missing").at("pre_tokenizer").withRemedy(kByteLevel);
    Json list = Json::array({*given});
    if (text(*given, "type") == "Sequence") {
      const Json* parts = member(*given, "pretokenizers");
      if (!parts || !parts->is_array())
        return fail(Code::Damaged, "has no list").at("pre_tokenizer").withRemedy(kDamagedRemedy);
      list = *parts;
    }
    bool byteLevel = false;
    for (const Json& part : list) {
      const std::string type = text(part, "type");
      if (type == "ByteLevel" && !isSet(part, "add_prefix_space") && !byteLevel) {
        byteLevel = true;
        result_.words_.gpt2 = isSet(part, "use_regex", true);
      } else if (type == "Digits" && isSet(part, "individual_digits") && !byteLevel) {
        result_.words_.singleDigits = true;
      } else {
        return fail(Code::WrongKind, "'{}' with these options is not supported", type)
            .at("pre_tokenizer")
            .withRemedy(
                "use ByteLevel without add_prefix_space, optionally after Digits with individual_digits");
      }
    }
    if (!byteLevel)
      return fail(Code::WrongKind, "has no ByteLevel").at("pre_tokenizer").withRemedy(kByteLevel);
    return {};
  }

  /// Special tokens in front of a text and after it.
  Status processor(const Json& root) {
    const Json* given = member(root, "post_processor");
    if (!given || text(*given, "type") == "ByteLevel") return {};
    const Json* single = member(*given, "single");
    if (text(*given, "type") != "TemplateProcessing" || !single || !single->is_array()) {
      return fail(Code::WrongKind, "'{}' is not supported", text(*given, "type"))
          .at("post_processor")
          .withRemedy("use ByteLevel or TemplateProcessing");
    }
    bool behind = false;
    for (const Json& part : *single) {
      if (member(part, "Sequence")) {
        behind = true;
        continue;
      }
      const Json* token = member(part, "SpecialToken");
      const std::string name = token ? text(*token, "id") : "";
      const auto known = std::find_if(result_.special_.begin(), result_.special_.end(),
                                      [&](const auto& special) { return special.text == name; });
      if (known == result_.special_.end()) {
        return fail(Code::Damaged, "names '{}', which is not a special token", name)
            .at("post_processor")
            .withRemedy(kDamagedRemedy);
      }
      (behind ? result_.behind_ : result_.before_).push_back(known->token);
    }
    return {};
  }

  Tokenizer result_;
  std::unordered_map<std::string, Json> ids_;  // of the vocabulary without special tokens
};

bool Tokenizer::namesAnEnd(std::string_view special) {
  return special.find("end") != std::string_view::npos || special.find("eos") != std::string_view::npos;
}

Result<Tokenizer> Tokenizer::parse(std::string_view bytes) {
  const size_t begin = bytes.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (bytes[begin] != '{' && bytes[begin] != '[')) {
    constexpr char kPieces = 0x0a;  // the first field of SentencePiece's files
    if (!bytes.empty() && bytes[0] == kPieces) return fromSentencePieces(bytes);
    return fail(Code::WrongKind, "is neither a tokenizer.json nor a SentencePiece file")
        .withRemedy("give the tokenizer.json or tokenizer.model that the network was trained with");
  }
  auto root = parseJson(bytes);
  if (!root) return std::move(root).error().withRemedy("give the tokenizer.json of a model");
  return TokenizerReader().run(*root);
}

Result<Tokenizer> Tokenizer::read(const std::filesystem::path& file) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  auto tokenizer = parse(asText(mapped->bytes()));
  if (!tokenizer) return std::move(tokenizer).error().inFile(file.string());
  return tokenizer;
}

Result<std::vector<int64_t>> Tokenizer::encode(std::string_view given) const {
  std::vector<int64_t> tokens = before_;
  if (pieces_) {
    const std::vector<int64_t> own = pieces_->encode(given);
    tokens.insert(tokens.end(), own.begin(), own.end());
    return tokens;
  }
  const auto plain = [&](std::string_view part) -> Status {
    CARINA_TRY(const auto words, splitWords(part, words_));
    for (std::string_view word : words) {
      std::vector<int64_t> bytes;
      for (char c : word) bytes.push_back(ofByte_[static_cast<uint8_t>(c)]);
      const std::vector<int64_t> merged = mergePairs(std::move(bytes), merges_);
      tokens.insert(tokens.end(), merged.begin(), merged.end());
    }
    return {};
  };
  size_t from = 0;
  for (size_t i = 0; i < given.size();) {
    const auto special = std::find_if(special_.begin(), special_.end(), [&](const Special& token) {
      return given.substr(i, token.text.size()) == token.text;
    });
    if (special == special_.end()) {
      ++i;
      continue;
    }
    CARINA_RETURN_IF_ERROR(plain(given.substr(from, i - from)));
    tokens.push_back(special->token);
    from = i += special->text.size();
  }
  CARINA_RETURN_IF_ERROR(plain(given.substr(from)));
  tokens.insert(tokens.end(), behind_.begin(), behind_.end());
  return tokens;
}

Result<std::string> Tokenizer::decode(int64_t token) const {
  if (token < 0 || token >= size() || !known_[static_cast<size_t>(token)])
    return fail(Code::Damaged, "{} is not a token: the tokenizer belongs to another model", token)
        .withRemedy("give the tokenizer that the network was trained with");
  return bytes_[static_cast<size_t>(token)];
}

}  // namespace carina::tokenizer
