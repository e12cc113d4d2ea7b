// SPDX-License-Identifier: Apache-2.0
// Tokenizers of language models, from the tokenizer.json of Hugging Face's tokenizers (byte-level byte-pair
// encoding) and from SentencePiece's files.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/byte_pairs.hpp"
#include "tokenizer/words.hpp"

namespace carina::tokenizer {

class SentencePieces;

class Tokenizer {
 public:
  /// Reads either kind of file. Errors name the file, the member and what is wrong with it: bad JSON, a model
  /// other than byte-level BPE, a normalizer, pre- or post-processors other than ByteLevel, Digits and
  /// templates of special tokens, duplicate ids, merges of missing tokens; for SentencePiece's files see
  /// sentence_pieces.hpp.
  static Result<Tokenizer> read(const std::filesystem::path& file);
  static Result<Tokenizer> parse(std::string_view bytes);

  /// The tokens of a text, with those that belong in front of and after it. A tokenizer.json defines these in
  /// its template, and its special tokens are recognized in the text. With a SentencePiece file, a text
  /// begins with the file's token for that, if it has one; control tokens are not recognized in texts.
  Result<std::vector<int64_t>> encode(std::string_view text) const;
  /// From now on, no tokens are added in front of a text.
  void leaveOutBeginning() { before_.clear(); }
  /// The bytes of a token that follows others; none for a special one. Fails if `token` is not a token.
  Result<std::string> decode(int64_t token) const;
  /// Whether the token ends a text: a special one with "end" or "eos" in its name, or the one that a
  /// SentencePiece file names.
  bool ends(int64_t token) const { return token >= 0 && token < size() && ends_[static_cast<size_t>(token)]; }
  /// The table that rt::Tokenizer reads in place (format/tokenizer_table.hpp). Not available for
  /// SentencePiece files.
  Result<std::string> table() const;
  /// One more than the largest token.
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

 private:
  friend class TokenizerReader;
  static Result<Tokenizer> fromSentencePieces(std::string_view bytes);
  static bool namesAnEnd(std::string_view special);
  struct Special {
    std::string text;
    int64_t token = 0;
  };

  std::vector<std::string> bytes_;     // per token
  std::vector<bool> known_, ends_;     // per token
  std::array<int64_t, 256> ofByte_{};  // tokens of single bytes
  Merges merges_;
  std::vector<Special> special_;          // longest first
  std::vector<int64_t> before_, behind_;  // of the template
  WordRules words_;
  std::shared_ptr<const SentencePieces>
      pieces_;  // of a SentencePiece file: takes the place of merges and words
};

}  // namespace carina::tokenizer
