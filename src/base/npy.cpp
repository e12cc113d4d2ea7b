// SPDX-License-Identifier: Apache-2.0
#include "base/npy.hpp"

#include <charconv>
#include <cstring>

#include "base/file.hpp"
#include "base/pairs.hpp"
#include "base/zip.hpp"

namespace carina {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran = false;
  Shape shape;
  size_t dataOffset = 0;
};

/// Reads the header's Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> parse() {
    Header header;
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{')) return bad();
    while (!take('}')) {
      CARINA_TRY(const std::string key, quoted());
      if (!take(':')) return bad();
      if (key == "descr" && !hasDescr) {
        if (peek() == '[') {
          return fail(Code::UnknownVersion, "holds records (a structured type)")
              .withRemedy("Save each field as a separate array.");
        }
        CARINA_TRY(header.descr, quoted());
        hasDescr = true;
      } else if (key == "fortran_order" && !hasOrder) {
        CARINA_TRY(header.fortran, boolean());
        hasOrder = true;
      } else if (key == "shape" && !hasShape) {
        CARINA_TRY(header.shape, tuple());
        hasShape = true;
      } else {
        return bad();
      }
      if (!take(',') && peek() != '}') return bad();
    }
    skipSpace();
    if (at_ != text_.size() || !hasDescr || !hasOrder || !hasShape) return bad();
    return header;
  }

 private:
  static Error bad() { return fail(Code::Damaged, "its .npy header is malformed"); }

  void skipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Result<std::string> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return bad();
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return bad();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  Result<bool> boolean() {
    skipSpace();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    return bad();
  }
  Result<Shape> tuple() {
    Shape shape;
    if (!take('(')) return bad();
    while (!take(')')) {
      skipSpace();
      int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) return bad();
      at_ += static_cast<size_t>(end - begin);
      if (peek() == 'L') ++at_;  // Python 2's suffix of long integers
      shape.push_back(size);
      if (shape.size() > 64) return fail(Code::UnknownVersion, "has more than 64 dimensions");
      if (!take(',') && peek() != ')') return bad();
    }
    return shape;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<Header> parseHeader(ByteSpan bytes) {
  const std::string_view text = asText(bytes);
  if (text.substr(0, kMagic.size()) != kMagic) return fail(Code::WrongKind, "is not a .npy array");
  if (text.size() < 10) return fail(Code::Damaged, "its .npy header is truncated");
  const auto byteAt = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(text[i])); };
  const size_t version = byteAt(6);
  if (version < 1 || version > 3)
    return fail(Code::UnknownVersion, "has .npy format version {}, which is unknown", version);
  size_t start = 10, length = byteAt(8) | byteAt(9) << 8;
  if (version > 1) {
    if (text.size() < 12) return fail(Code::Damaged, "its .npy header is truncated");
    start = 12;
    length |= byteAt(10) << 16 | byteAt(11) << 24;
  }
  if (length > text.size() - start) return fail(Code::Damaged, "its .npy header is truncated");
  CARINA_TRY(Header header, HeaderParser(text.substr(start, length)).parse());
  header.dataOffset = start + length;
  return header;
}

struct ElementType {
  DType dtype;
  bool unsigned64 = false;  // stored as Int64 once the values are known to fit
};

Result<ElementType> elementType(const std::string& descr) {
  if (descr.size() < 3) return fail(Code::UnknownVersion, "has the unknown element type '{}'", descr);
  const char order = descr[0];
  const std::string_view kind = std::string_view(descr).substr(1);
  if (order == '>' && kind != "b1" && kind != "i1" && kind != "u1") {
    return fail(Code::UnknownVersion, "is big-endian ('{}')", descr)
        .withRemedy("Save it with array.astype(array.dtype.newbyteorder('<')).");
  }
  if (kind[0] == 'O')
    return fail(Code::UnknownVersion, "holds Python objects").withRemedy("Save a plain numeric array.");
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"b1", DType::Bool},    {"i1", DType::Int8},    {"i2", DType::Int16},  {"i4", DType::Int32},
      {"i8", DType::Int64},   {"u1", DType::UInt8},   {"u2", DType::UInt16}, {"u4", DType::UInt32},
      {"f2", DType::Float16}, {"f4", DType::Float32}, {"f8", DType::Float64}};
  if (order == '<' || order == '|' || order == '=' || order == '>') {
    for (const auto& [name, dtype] : kTypes) {
      if (kind == name) return ElementType{dtype};
    }
    if (kind == "u8") return ElementType{DType::Int64, true};
  }
  return fail(Code::UnknownVersion, "has the element type '{}', which cannot be read", descr)
      .withRemedy("Use bool, int8 to int64, uint8 to uint64, float16, float32 or float64.");
}

/// Fortran order to row-major.
Tensor transposed(const Tensor& source) {
  const Shape& shape = source.shape();
  Tensor result = Tensor::uninitialized(source.dtype(), shape);
  const auto size = static_cast<size_t>(dtypeSize(source.dtype()));
  const std::byte* from = source.bytes().data();
  std::byte* to = result.mutableBytes().data();
  Shape fromStrides(shape.size());
  int64_t stride = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    fromStrides[d] = stride;
    stride *= shape[d];
  }
  Shape index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < source.numElements(); ++i) {
    std::memcpy(to + static_cast<size_t>(i) * size, from + static_cast<size_t>(offset) * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += fromStrides[d];
      if (++index[d] < shape[d]) break;
      offset -= fromStrides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

constexpr std::pair<DType, std::string_view> kDescriptions[] = {
    {DType::Bool, "|b1"},     {DType::Int4, "|i1"},    {DType::Int8, "|i1"},   {DType::UInt8, "|u1"},
    {DType::Int16, "<i2"},    {DType::UInt16, "<u2"},  {DType::Int32, "<i4"},  {DType::UInt32, "<u4"},
    {DType::Int48, "<i8"},    {DType::Int64, "<i8"},   {DType::Shape, "<i8"},  {DType::Float16, "<f2"},
    {DType::BFloat16, "<f4"}, {DType::Float32, "<f4"}, {DType::Float64, "<f8"}};

std::string_view descrOf(DType dtype) {
  const auto description = secondOf(kDescriptions, dtype);
  CARINA_CHECK(description.has_value(), "every element type has a row");
  return *description;
}

}  // namespace

Result<Tensor> parseNpy(ByteSpan bytes, std::shared_ptr<const void> owner) {
  CARINA_TRY(const Header header, parseHeader(bytes));
  CARINA_TRY(const ElementType type, elementType(header.descr));
  const auto count = checkedNumElements(header.shape);
  const auto size = count ? checkedMul(*count, dtypeSize(type.dtype)) : std::nullopt;
  const ByteSpan data = bytes.subspan(header.dataOffset);
  if (!size || static_cast<uint64_t>(*size) != data.size()) {
    return fail(Code::Damaged, "has {} bytes of data, which does not fit shape {} of '{}'", data.size(),
                shapeText(header.shape), header.descr);
  }
  Tensor tensor;
  if (owner) {
    tensor = Tensor::borrow(type.dtype, header.shape, data, std::move(owner));
  } else {
    tensor = Tensor::uninitialized(type.dtype, header.shape);
    if (!data.empty()) std::memcpy(tensor.mutableBytes().data(), data.data(), data.size());
  }
  if (type.unsigned64) {
    for (int64_t value : tensor.as<int64_t>()) {
      if (value < 0) return fail(Code::UnknownVersion, "holds uint64 values beyond the range of int64");
    }
  }
  if (type.dtype == DType::Bool) {
    for (uint8_t value : tensor.as<uint8_t>()) {
      if (value > 1) return fail(Code::Damaged, "holds a bool that is neither 0 nor 1");
    }
  }
  return header.fortran && tensor.rank() > 1 ? transposed(tensor) : tensor;
}

std::string formatNpy(const Tensor& tensor) {
  std::string shape = "(";
  for (int64_t size : tensor.shape()) shape += fmt::format("{}, ", size);
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.pop_back();
  shape += ")";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descrOf(tensor.dtype()), shape);
  // Magic, version and length take ten bytes; the data starts at a multiple of 64.
  const size_t total = static_cast<size_t>(roundUp(static_cast<int64_t>(10 + header.size() + 1), 64));
  header.append(total - 10 - header.size() - 1, ' ');
  header += '\n';
  CARINA_CHECK(header.size() <= 0xffff, "header of a tensor with very many dimensions");
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  out += header;
  out += asText((tensor.dtype() == DType::BFloat16 ? convert(tensor, DType::Float32) : tensor).bytes());
  return out;
}

namespace {

Result<NamedTensors> parseNpz(const std::shared_ptr<const MappedFile>& file) {
  CARINA_TRY(const ZipArchive archive, ZipArchive::open(file->bytes(), file));
  NamedTensors tensors;
  constexpr std::string_view kSuffix = ".npy";
  for (const ZipArchive::Member& member : archive.members()) {
    const std::string_view name = member.name;
    if (name.size() <= kSuffix.size() || name.substr(name.size() - kSuffix.size()) != kSuffix) {
      return fail(Code::WrongKind, "member '{}' is not an array", name)
          .withRemedy("An .npz archive holds .npy arrays only.");
    }
    CARINA_TRY(const ZipArchive::Contents contents, archive.read(member));
    auto tensor = parseNpy(contents.bytes, contents.owner);
    if (!tensor) return std::move(tensor).error().at(name);
    tensors.emplace_back(name.substr(0, name.size() - kSuffix.size()), std::move(*tensor));
  }
  return tensors;
}

}  // namespace

Result<NamedTensors> readNpz(const std::filesystem::path& path) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  auto tensors = parseNpz(file);
  if (!tensors)
    return std::move(tensors)
        .error()
        .inFile(file->path())
        .withRemedy("give an .npz file, as written by numpy.savez");
  return tensors;
}

std::string formatNpz(const NamedTensors& tensors) {
  std::vector<std::pair<std::string, std::string>> members;
  for (const auto& [name, tensor] : tensors) members.emplace_back(name + ".npy", formatNpy(tensor));
  return writeZip(members);
}

Result<NamedTensors> readArrays(const std::filesystem::path& path) {
  CARINA_TRY(const auto file, MappedFile::open(path));
  if (asText(file->bytes()).substr(0, kMagic.size()) == kMagic) {
    auto tensor = parseNpy(file->bytes(), file);
    if (!tensor) return std::move(tensor).error().inFile(file->path());
    return NamedTensors{{"", std::move(*tensor)}};
  }
  auto tensors = parseNpz(file);
  if (!tensors) {
    return std::move(tensors)
        .error()
        .inFile(file->path())
        .withRemedy("Give a .npy or .npz file of NumPy arrays.");
  }
  return tensors;
}

}  // namespace carina
