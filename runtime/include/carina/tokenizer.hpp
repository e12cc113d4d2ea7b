// SPDX-License-Identifier: Apache-2.0
// A byte pair tokenizer in a table (format/tokenizer_table.hpp), read in place: what lets a device take a
// prompt and write what a language model says to it.
#pragma once

#include "carina/span.hpp"
#include "carina/status.hpp"
#include "carina/words.hpp"

namespace carina::rt {

/// A token of a text while its pairs are merged.
struct TokenPiece {
  uint32_t token;
  uint32_t merge;  // of the tokenizer's merges, the one that takes this and the next piece
};

class Tokenizer {
 public:
  /// Checks every word of the table (untrusted), which stays where it is. What is wrong with it says so with
  /// its place: the word, counted from 0.
  static Status load(Bytes table, Tokenizer* tokenizer);

  uint32_t size() const { return tokens_.count; }

  /// The tokens of a text at the front of `pieces`: special tokens in it stand for themselves, and those that
  /// belong around every text come before and behind. Takes a piece for each byte of the longest word and
  /// one for each token in front of it; time grows with the square of that word. Fails where there are too
  /// few, and where words are cut by classes of characters and the text is not ASCII.
  Status encode(Text text, Span<TokenPiece> pieces, uint32_t* count) const;
  /// The bytes of a token; none of a special one. Fails for a number that is no token.
  Status decode(uint32_t token, Text* text) const;
  /// Whether the token ends a text. False for a number that is no token.
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
  /// End of the text in front of that of `token`.
  uint32_t textBegin(uint32_t token) const;

  Status layOut();
  Status checkTokens(const Section& section) const;
  Status checkTexts() const;
  Status checkMerges() const;

  uint32_t findMerge(uint32_t left, uint32_t right) const;
  void mergePairs(Span<TokenPiece> pieces, size_t begin, size_t* end) const;
  Status encodePlain(Text text, Output& output) const;
  /// The first special token that `text` begins with; the number of special tokens when there is none.
  uint32_t specialAt(Text text) const;

  Bytes table_;
  WordRules rules_;
  Section tokens_, merges_, specials_, before_, behind_;
  uint32_t texts_ = 0;  // where they begin, in bytes
  uint32_t textBytes_ = 0;
};

}  // namespace carina::rt
