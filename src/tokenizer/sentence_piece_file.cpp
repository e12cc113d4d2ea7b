// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/sentence_piece_file.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "base/damaged.hpp"

namespace carina::tokenizer {
namespace {

constexpr size_t kMaxPieces = 1 << 21;
/// SentencePiece's own trainer creates pieces of up to 16 characters by default.
constexpr size_t kLongestPiece = 4096;

/// Iterates over the fields of a message in the wire format of Protocol Buffers.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  /// Advances to the next field; false at the end or if the bytes are damaged.
  bool next() {
    if (rest_.empty() || damaged_) return false;
    const uint64_t tag = varint();
    number_ = static_cast<uint32_t>(tag >> 3);
    bytes_ = {};
    switch (tag & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        damaged_ = true;
    }
    kind_ = static_cast<uint8_t>(tag & 7);
    damaged_ = damaged_ || tag >> 3 == 0 || tag >> 32 != 0;
    return !damaged_;
  }
  bool damaged() const { return damaged_; }

  uint32_t number() const { return number_; }
  /// The value of the field, if it has this type.
  std::optional<uint64_t> integer() const { return kind_ == 0 ? std::optional(value_) : std::nullopt; }
  std::optional<std::string_view> text() const { return kind_ == 2 ? std::optional(bytes_) : std::nullopt; }
  std::optional<float> real() const {
    if (kind_ != 5) return std::nullopt;
    float value;
    std::memcpy(&value, bytes_.data(), 4);
    return value;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (damaged_) return 0;
      value |= (uint64_t{static_cast<uint8_t>(byte[0])} & 0x7f) << shift;
      if ((byte[0] & 0x80) == 0) return value;
    }
    damaged_ = true;
    return 0;
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) {
      damaged_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_, bytes_;
  uint64_t value_ = 0;
  uint32_t number_ = 0;
  uint8_t kind_ = 0;
  bool damaged_ = false;
};

Error damaged(const std::string& where) {
  return fail(Code::Damaged, "is not a message of a SentencePiece file").at(where).withRemedy(kDamagedRemedy);
}

/// Calls `field(fields)` for every field of a message; it returns false for a field of the wrong type.
template <typename Field>
Status forEachField(std::string_view bytes, const std::string& where, const Field& field) {
  Fields fields(bytes);
  while (fields.next()) {
    if (!field(fields)) return damaged(where);
  }
  if (fields.damaged()) return damaged(where);
  return {};
}

/// Sets a member if the field has its type; returns whether it does.
bool set(const std::optional<uint64_t>& value, bool& member) {
  if (value) member = *value != 0;
  return value.has_value();
}
template <typename Text>
bool set(const std::optional<std::string_view>& value, Text& member) {
  if (value) member = Text(*value);
  return value.has_value();
}
bool set(const std::optional<float>& value, float& member) {
  if (value) member = *value;
  return value.has_value();
}

class Reader {
 public:
  Result<SentencePieceFile> run(std::string_view bytes) {
    Status inner;
    const Status outer = forEachField(bytes, "the file", [&](const Fields& field) {
      const auto text = field.text();
      const bool known =
          field.number() == 1 || field.number() == 2 || field.number() == 3 || field.number() == 5;
      if (!known || !inner.ok()) return true;
      if (text) inner = message(field.number(), *text);
      return text.has_value();
    });
    CARINA_RETURN_IF_ERROR(inner);
    CARINA_RETURN_IF_ERROR(outer);
    CARINA_RETURN_IF_ERROR(checkModel());
    CARINA_RETURN_IF_ERROR(checkPieces());
    return std::move(file_);
  }

 private:
  Status message(uint32_t number, std::string_view bytes) {
    switch (number) {
      case 1:
        return piece(bytes);
      case 2:
        return trainer(bytes);
      case 3:
        return normalizer(bytes, "normalizer_spec", file_.normalizer);
      default:
        SentencePieceFile::Normalizer behind;
        CARINA_RETURN_IF_ERROR(normalizer(bytes, "denormalizer_spec", behind));
        file_.denormalizes = file_.denormalizes || !behind.map.empty();
        return {};
    }
  }

  std::string pieceName(size_t index) const { return fmt::format("pieces[{}]", index); }

  Status piece(std::string_view bytes) {
    if (file_.pieces.size() == kMaxPieces)
      return fail(Code::Excessive, "there are more than {}", kMaxPieces).at("pieces");
    SentencePieceFile::Piece piece;
    uint64_t kind = 1;
    const std::string name = pieceName(file_.pieces.size());
    CARINA_RETURN_IF_ERROR(forEachField(bytes, name, [&](const Fields& field) {
      switch (field.number()) {
        case 1:
          return set(field.text(), piece.text);
        case 2:
          return set(field.real(), piece.score);
        case 3:
          kind = field.integer().value_or(0);
          return field.integer().has_value();
        default:
          return true;
      }
    }));
    if (kind < 1 || kind > 6)
      return fail(Code::Damaged, "has the unknown type {}", kind).at(name).withRemedy(kDamagedRemedy);
    piece.kind = static_cast<SentencePieceFile::Kind>(kind);
    file_.pieces.push_back(std::move(piece));
    return {};
  }

  Status trainer(std::string_view bytes) {
    uint64_t model = static_cast<uint64_t>(file_.model);
    CARINA_RETURN_IF_ERROR(forEachField(bytes, "trainer_spec", [&](const Fields& field) {
      switch (field.number()) {
        case 3:
          model = field.integer().value_or(0);
          return field.integer().has_value();
        case 24:
          return set(field.integer(), file_.whitespaceAsSuffix);
        case 35:
          return set(field.integer(), file_.byteFallback);
        case 44:
          return set(field.text(), file_.unknownSurface);
        case 46:
          return set(field.text(), file_.bos);
        case 47:
          return set(field.text(), file_.eos);
        default:
          return true;
      }
    }));
    if (model < 1 || model > 4)
      return fail(Code::Damaged, "is {}", model).at("trainer_spec.model_type").withRemedy(kDamagedRemedy);
    file_.model = static_cast<SentencePieceFile::Model>(model);
    return {};
  }

  static Status normalizer(std::string_view bytes, const char* name, SentencePieceFile::Normalizer& to) {
    return forEachField(bytes, name, [&](const Fields& field) {
      switch (field.number()) {
        case 2:
          return set(field.text(), to.map);
        case 3:
          return set(field.integer(), to.dummyPrefix);
        case 4:
          return set(field.integer(), to.removeExtraWhitespace);
        case 5:
          return set(field.integer(), to.escapeWhitespace);
        default:
          return true;
      }
    });
  }

  Status checkModel() const {
    constexpr const char* kKinds = "use a unigram or BPE model";
    if (file_.model == SentencePieceFile::Model::Word || file_.model == SentencePieceFile::Model::Char) {
      return fail(Code::WrongKind, "is '{}'", file_.model == SentencePieceFile::Model::Word ? "word" : "char")
          .at("trainer_spec.model_type")
          .withRemedy(kKinds);
    }
    if (file_.denormalizes) {
      return fail(Code::WrongKind, "post-processes decoded text")
          .at("denormalizer_spec")
          .withRemedy("use a model without a denormalizer");
    }
    return {};
  }

  Status checkPieces() {
    std::unordered_set<std::string_view> known;
    size_t unknown = 0;
    std::array<bool, 256> bytes{};
    for (size_t i = 0; i < file_.pieces.size(); ++i) {
      const SentencePieceFile::Piece& piece = file_.pieces[i];
      const auto wrong = [&](std::string what) {
        return fail(Code::Damaged, "{}", what).at(pieceName(i)).withRemedy(kDamagedRemedy);
      };
      if (piece.text.empty()) return wrong("has no text");
      if (piece.text.size() > kLongestPiece)
        return wrong(fmt::format("has more than {} bytes", kLongestPiece));
      if (!std::isfinite(piece.score)) return wrong("has a score that is not a finite number");
      if (!known.insert(piece.text).second) return wrong(fmt::format("'{}' appears twice", piece.text));
      if (piece.kind == SentencePieceFile::Kind::Unknown) {
        ++unknown;
        file_.unknown = i;
      }
      if (piece.kind == SentencePieceFile::Kind::Byte) CARINA_RETURN_IF_ERROR(checkByte(i, bytes));
    }
    if (unknown != 1)
      return fail(Code::Damaged, "has {} pieces for unknown text, expected one", unknown)
          .at("pieces")
          .withRemedy(kDamagedRemedy);
    for (size_t b = 0; b < bytes.size() && file_.byteFallback; ++b) {
      if (!bytes[b])
        return fail(Code::Damaged, "has no piece for the byte {:#04x}, although byte_fallback is set", b)
            .at("pieces")
            .withRemedy(kDamagedRemedy);
    }
    return {};
  }

  Status checkByte(size_t index, std::array<bool, 256>& bytes) const {
    for (size_t b = 0; b < bytes.size() && file_.byteFallback; ++b) {
      if (file_.pieces[index].text != bytePiece(static_cast<uint8_t>(b))) continue;
      bytes[b] = true;
      return {};
    }
    return fail(Code::Damaged, "'{}' has the type of byte pieces, but {}", file_.pieces[index].text,
                file_.byteFallback ? "does not name a byte" : "byte_fallback is not set")
        .at(pieceName(index))
        .withRemedy(kDamagedRemedy);
  }

  SentencePieceFile file_;
};

}  // namespace

Result<SentencePieceFile> readSentencePieceFile(std::string_view bytes) {
  return Reader().run(bytes);
}

std::string bytePiece(uint8_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

}  // namespace carina::tokenizer
