// SPDX-License-Identifier: Apache-2.0
// Tokenization by SentencePiece: replaces characters, makes whitespace visible, then selects the most likely
// pieces (unigram) or merges pairs by score (BPE).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tokenizer/character_map.hpp"
#include "tokenizer/piece_trie.hpp"
#include "tokenizer/sentence_piece_file.hpp"

namespace carina::tokenizer {

class SentencePieces {
 public:
  /// Copies the file's bytes. Errors are those of readSentencePieceFile() and CharacterMap.
  static Result<SentencePieces> parse(std::string_view bytes);
  SentencePieces(SentencePieces&&) = default;
  SentencePieces& operator=(SentencePieces&&) = default;

  const SentencePieceFile& file() const { return file_; }
  /// The tokens of a text, without any in front of or after it.
  std::vector<int64_t> encode(std::string_view text) const;
  /// The text in the form in which pieces are matched.
  std::string normalize(std::string_view text) const;
  /// The token of a control piece of this name; -1 when there is none.
  int64_t control(std::string_view name) const;

 private:
  SentencePieces() = default;
  struct Part {
    std::string_view text;
    int64_t token = 0;
  };

  /// Replacement of what the text begins with, and the length of the original.
  CharacterMap::Replacement first(std::string_view text) const;
  std::vector<Part> likeliest(std::string_view text) const;
  std::vector<Part> merged(std::string_view text) const;
  int64_t tokenOf(std::string_view piece) const;

  std::vector<char> bytes_;  // the map points into them
  SentencePieceFile file_;
  CharacterMap map_;
  PieceTrie pieces_;       // of which texts consist: all but control, unknown and byte pieces
  PieceTrie reserved_;     // the others
  PieceTrie userDefined_;  // neither replaced nor split
  float lowest_ = 0;       // lowest score of a normal piece
};

}  // namespace carina::tokenizer
