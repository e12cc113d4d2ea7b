// SPDX-License-Identifier: Apache-2.0
// Error codes of the runtime. Every function that can fail returns a Status: a code, a description and a
// location.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace carina::rt {

enum class Code : uint8_t {
  Ok = 0,
  NotAProgram,       // no program identifier at the start
  Truncated,         // fewer bytes than the file says it has
  Misaligned,        // base address or an offset is not aligned as the data require
  Corrupt,           // the container contradicts itself
  Unsupported,       // well-formed, but not supported by this runtime
  NotFound,          // no such method, segment or named data
  MissingKernel,     // an operator has no kernel in the given table
  MissingBackend,    // a delegate names a backend that is not available
  OutOfMemory,       // a pool or arena is smaller than required
  InvalidArgument,   // a call of this interface, or an operator argument, is out of range
  TypeMismatch,      // element or value type is not the expected one
  ShapeMismatch,     // sizes or byte counts differ
  InvalidState,      // called in the wrong order
  InstructionLimit,  // the program runs longer than the limit: an endless loop
  CorruptDelegate,   // the delegate blob contradicts itself
  WrongTarget,       // the delegate was compiled for another NPU than the one present
  DeviceFault,       // the NPU stopped with a fault
  DeviceTimeout,     // the NPU did not answer in time
  MapFailed,         // a buffer cannot be reached by the NPU
};

/// A short text for the code alone, e.g. "missing kernel".
const char* codeText(Code code);

/// The outcome of a call. `what` is a constant text (never null on failure). `where` is a byte offset in the
/// program for format errors, an index (value, instruction, input) otherwise; kNowhere if not applicable.
/// `name` points to a name inside the program (operator, backend, method) and is not zero-terminated.
struct [[nodiscard]] Status {
  static constexpr uint32_t kNowhere = 0xffffffffu;

  Code code = Code::Ok;
  uint8_t nameLength = 0;
  uint32_t where = kNowhere;
  const char* what = nullptr;
  const char* name = nullptr;

  constexpr bool ok() const { return code == Code::Ok; }
  constexpr explicit operator bool() const { return ok(); }
};

constexpr Status failure(Code code, const char* what, uint32_t where = Status::kNowhere) {
  return Status{code, 0, where, what, nullptr};
}
inline Status failureNamed(Code code, const char* what, const char* name, size_t length,
                           uint32_t where = Status::kNowhere) {
  return Status{code, static_cast<uint8_t>(length < 255 ? length : 255), where, what, name};
}

/// "missing kernel: no kernel of this name is linked (aten::add.out, at 3)", zero-terminated, cut to `size`
/// bytes. Returns the length written without the zero.
size_t statusText(const Status& status, char* text, size_t size);

}  // namespace carina::rt

#define CARINA_RT_TRY(expression)                           \
  do {                                                      \
    const ::carina::rt::Status carinaStatus = (expression); \
    if (!carinaStatus.ok()) return carinaStatus;            \
  } while (false)
