// SPDX-License-Identifier: Apache-2.0
// Tokenizers of language models, from the tokenizer.json of Hugging Face's tokenizers: byte-level byte pair
// encoding.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/byte_pairs.hpp"
#include "tokenizer/words.hpp"

namespace carina::tokenizer {

class Tokenizer {
 public:
  /// Errors name the file, the member and what is wrong with it: bad JSON, another model than byte-level BPE,
  /// a normalizer, pre- or post-processors other than ByteLevel, Digits and templates of special tokens, ids
  /// that are taken twice, merges of tokens that are not there.
  static Result<Tokenizer> read(const std::filesystem::path& file);
  static Result<Tokenizer> parse(std::string_view json);

  /// The tokens of a text: special tokens in it stand for themselves, and those of the file's template come
  /// before and behind.
  Result<std::vector<int64_t>> encode(std::string_view text) const;
  /// The bytes of a token; nothing for a special one. Fails for a number that is no token.
  Result<std::string> decode(int64_t token) const;
  /// Whether the token ends a text: a special one with "end" or "eos" in its name.
  bool ends(int64_t token) const;
  /// The tokenizer for rt::Tokenizer, which reads it in place: format/tokenizer_table.hpp.
  Result<std::string> table() const;
  /// One more than the largest token.
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  friend class TokenizerReader;
  struct Special {
    std::string text;
    int64_t token = 0;
  };

  std::vector<std::string> bytes_;     // per token
  std::vector<bool> known_;            // per token
  std::array<int64_t, 256> ofByte_{};  // tokens of single bytes
  Merges merges_;
  std::vector<Special> special_;          // the longest first
  std::vector<int64_t> before_, behind_;  // of the template
  WordRules words_;
};

}  // namespace carina::tokenizer
