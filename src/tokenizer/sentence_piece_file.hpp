// SPDX-License-Identifier: Apache-2.0
// The model files of SentencePiece (.model): their contents, and validation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::tokenizer {

struct SentencePieceFile {
  enum class Kind : uint8_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::Normal;
  };
  enum class Model : uint8_t { Unigram = 1, Bpe, Word, Char };
  struct Normalizer {
    std::string_view map;  // of characters, precompiled; see CharacterMap
    bool dummyPrefix = true, removeExtraWhitespace = true, escapeWhitespace = true;
  };

  std::vector<Piece> pieces;
  Model model = Model::Unigram;
  bool byteFallback = false, whitespaceAsSuffix = false;
  std::string unknownSurface = " \xe2\x81\x87 ";  // text of an unknown token
  std::string bos = "<s>", eos = "</s>";
  Normalizer normalizer;
  bool denormalizes = false;  // texts are also changed after decoding

  size_t unknown = 0;  // index of the only piece of that kind
};

/// The member `map` points into `bytes`. Errors: bytes that are no such message, model types other than
/// unigram and BPE, a map for decoding, pieces that are empty, too long, duplicate or inconsistent with the
/// rest of the file.
Result<SentencePieceFile> readSentencePieceFile(std::string_view bytes);

/// "<0x41>": the piece that represents a byte.
std::string bytePiece(uint8_t byte);

}  // namespace carina::tokenizer
