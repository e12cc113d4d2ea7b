// SPDX-License-Identifier: Apache-2.0
// A byte-pair tokenizer in a table (format/tokenizer_table.hpp), read in place: lets a device accept prompts
// as text and write the output of a language model.
#pragma once

#include "carina/span.hpp"
#include "carina/status.hpp"
#include "carina/words.hpp"

namespace carina::rt {

/// A token of a text while its pairs are merged.
struct TokenPiece {
  uint32_t token;
  uint32_t merge;  // index of the merge that joins this piece and the next
};

class Tokenizer {
 public:
  /// Checks every word of the table (untrusted), which must not move afterwards. `where` of an error is the
  /// index of the faulty word.
  static Status load(Bytes table, Tokenizer* tokenizer);

  uint32_t size() const { return tokens_.count; }

  /// Writes the tokens of a text to the front of `pieces`: special tokens in the text are recognized, and the
  /// tokens in front of and after every text are added. Needs a piece for each byte of the longest word and
  /// one for each token in front of it; time is quadratic in that word. Fails if there are too few pieces, or
  /// if words are split by character class and the text is not ASCII.
  Status encode(Text text, Span<TokenPiece> pieces, uint32_t* count) const;
  /// The bytes of a token; none for a special one. Fails if `token` is not a token.
  Status decode(uint32_t token, Text* text) const;
  /// Whether the token ends a text. False if `token` is not a token.
  bool ends(uint32_t token) const;

 private:
  struct Section {
    uint32_t begin = 0, count = 0;  // in words; entries
  };
  class Output;

  uint32_t word(size_t index) const {
    uint32_t value;
    __builtin_memcpy(&value, table_.data + 4 * index, 4);
    return value;
  }
  uint32_t mergeWord(uint32_t merge, uint32_t which) const;
  Text specialText(uint32_t special) const;
  Text textBetween(uint32_t begin, uint32_t end) const;
  /// End of the text that precedes that of `token`.
  uint32_t textBegin(uint32_t token) const;

  Status layOut();
  Status checkTokens(const Section& section) const;
  Status checkTexts() const;
  Status checkMerges() const;

  uint32_t findMerge(uint32_t left, uint32_t right) const;
  void mergePairs(Span<TokenPiece> pieces, size_t begin, size_t* end) const;
  Status encodePlain(Text text, Output& output) const;
  /// The first special token that `text` begins with; the number of special tokens if there is none.
  uint32_t specialAt(Text text) const;

  Bytes table_;
  WordRules rules_;
  Section tokens_, merges_, specials_, before_, behind_;
  uint32_t texts_ = 0;  // start in the table, in bytes
  uint32_t textBytes_ = 0;
};

}  // namespace carina::rt
