// SPDX-License-Identifier: Apache-2.0
// Tokenizers from SentencePiece files.
#include "tokenizer/sentence_pieces.hpp"
#include "tokenizer/tokenizer.hpp"

namespace carina::tokenizer {
namespace {

/// The text of a piece that follows others.
std::string textOf(const SentencePieceFile& file, const SentencePieceFile::Piece& piece) {
  using Kind = SentencePieceFile::Kind;
  switch (piece.kind) {
    case Kind::Control:
      return "";
    case Kind::Unknown:
      return file.unknownSurface;
    case Kind::Byte:
      for (int b = 0; b < 256; ++b) {
        if (piece.text == bytePiece(static_cast<uint8_t>(b))) return std::string(1, static_cast<char>(b));
      }
      return "";
    default:
      break;
  }
  constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
  std::string text = piece.text;
  for (size_t at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at + 1))
    text.replace(at, kSpace.size(), " ");
  return text;
}

}  // namespace

Result<Tokenizer> Tokenizer::fromSentencePieces(std::string_view bytes) {
  CARINA_TRY(SentencePieces pieces, SentencePieces::parse(bytes));
  Tokenizer result;
  const SentencePieceFile& file = pieces.file();
  const int64_t eos = pieces.control(file.eos);
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    const bool special = piece.kind == SentencePieceFile::Kind::Control ||
                         (piece.kind == SentencePieceFile::Kind::UserDefined && piece.text[0] == '<');
    result.ends_.push_back(static_cast<int64_t>(result.bytes_.size()) == eos ||
                           (special && namesAnEnd(piece.text)));
    result.bytes_.push_back(textOf(file, piece));
    result.known_.push_back(true);
  }
  if (const int64_t bos = pieces.control(file.bos); bos >= 0) result.before_.push_back(bos);
  result.pieces_ = std::make_shared<const SentencePieces>(std::move(pieces));
  return result;
}

}  // namespace carina::tokenizer
