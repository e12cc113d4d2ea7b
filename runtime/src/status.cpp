// SPDX-License-Identifier: Apache-2.0
// Texts of error codes.
#include "carina/status.hpp"

#include "carina/span.hpp"

namespace carina::rt {

const char* codeText(Code code) {
  switch (code) {
    case Code::Ok:
      return "ok";
    case Code::NotAProgram:
      return "not a program";
    case Code::Truncated:
      return "truncated";
    case Code::Misaligned:
      return "misaligned";
    case Code::Corrupt:
      return "corrupt program";
    case Code::Unsupported:
      return "unsupported";
    case Code::NotFound:
      return "not found";
    case Code::MissingKernel:
      return "missing kernel";
    case Code::MissingBackend:
      return "missing backend";
    case Code::OutOfMemory:
      return "out of memory";
    case Code::InvalidArgument:
      return "invalid argument";
    case Code::TypeMismatch:
      return "wrong type";
    case Code::ShapeMismatch:
      return "wrong shape";
    case Code::InvalidState:
      return "invalid state";
    case Code::InstructionLimit:
      return "instruction limit";
    case Code::CorruptDelegate:
      return "corrupt delegate";
    case Code::WrongTarget:
      return "wrong target";
    case Code::DeviceFault:
      return "device fault";
    case Code::DeviceTimeout:
      return "device timeout";
    case Code::MapFailed:
      return "buffer not reachable";
  }
  return "unknown code";
}

namespace {

/// Appends to a text of fixed size and drops what does not fit.
class TextWriter {
 public:
  TextWriter(char* text, size_t size) : text_(text), size_(size) {}
  void add(const char* source, size_t length) {
    for (size_t i = 0; i < length && used_ + 1 < size_; ++i) text_[used_++] = source[i];
  }
  void add(const char* source) { add(source, textLength(source)); }
  void number(uint32_t value) {
    char digits[10];
    size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) add(&digits[--count], 1);
  }
  size_t finish() {
    if (size_ > 0) text_[used_] = 0;
    return used_;
  }

 private:
  char* text_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace

size_t statusText(const Status& status, char* text, size_t size) {
  TextWriter writer(text, size);
  writer.add(codeText(status.code));
  if (status.what != nullptr) {
    writer.add(": ");
    writer.add(status.what);
  }
  const bool named = status.name != nullptr;
  const bool placed = status.where != Status::kNowhere;
  if (named || placed) writer.add(" (");
  if (named) writer.add(status.name, status.nameLength);
  if (named && placed) writer.add(", ");
  if (placed) {
    writer.add("at ");
    writer.number(status.where);
  }
  if (named || placed) writer.add(")");
  return writer.finish();
}

}  // namespace carina::rt
