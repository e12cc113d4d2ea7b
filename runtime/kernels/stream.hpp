// SPDX-License-Identifier: Apache-2.0
// Access to elements of any type in chunks of float32 or int64: kernels compute in these two, so that one
// loop serves every element type.
#pragma once

#include "call.hpp"

namespace carina::rt::kernels {

/// Elements converted and computed at a time; buffers of this size are on the stack.
constexpr size_t kChunk = 32;

/// Elements at, at + step, ... (in elements from the tensor's start) as float32 or int64.
void loadReals(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, float* into);
void loadIntegers(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, int64_t* into);
/// Float32 stores either kind; integers wrap, after truncating floats toward zero; Bool is "not 0".
void storeReals(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, const float* from);
void storeIntegers(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, const int64_t* from);
/// Like loadReals, but returns the tensor's own memory if possible.
inline const float* realChunk(const Tensor& tensor, size_t at, ptrdiff_t step, size_t count, float* buffer) {
  if (isReal(tensor.type) && step == 1) return tensor.as<const float>() + at;
  loadReals(tensor, at, step, count, buffer);
  return buffer;
}
/// The value wrapped to the range of an integer type.
int64_t wrapTo(ScalarType type, int64_t value);

/// Walks tensors together over the elements of `shape` in its memory order, with broadcasting. Within a run,
/// every operand advances by a constant step; in `shape`, runs are contiguous.
class Runs {
 public:
  static constexpr uint32_t kOperands = 3;

  /// Null operands are skipped. ShapeMismatch if one does not broadcast to `shape`.
  Status open(const Tensor& shape, const Tensor* const* operands, uint32_t count);
  bool done() const { return left_ == 0; }
  /// Elements of a run.
  size_t length() const { return length_; }
  /// First element of the run in operand k, and the distance to the next.
  size_t at(uint32_t k) const { return at_[k]; }
  ptrdiff_t step(uint32_t k) const { return static_cast<ptrdiff_t>(step_[k]); }
  void next();

 private:
  uint32_t rank_ = 0, count_ = 0;
  size_t left_ = 0, length_ = 0;
  size_t at_[kOperands] = {}, step_[kOperands] = {};
  size_t sizes_[kMaxRank], index_[kMaxRank];
  size_t strides_[kOperands][kMaxRank];
};

/// A scalar argument of the functions below.
struct Parameter {
  float real = 0;
  int64_t integer = 0;
};
/// out[i] = f(in[0][i], in[1][i], ...); returns false to reject an operand (division by zero).
using RealFunction = bool (*)(const float* const* in, float* out, size_t count, const Parameter* parameters);
using IntegerFunction = bool (*)(const int64_t* const* in, int64_t* out, size_t count,
                                 const Parameter* parameters);

/// The functions of an elementwise kernel; null if undefined for that kind of element.
struct Functions {
  RealFunction real;
  IntegerFunction integer;
};
enum class Result : uint8_t {
  Same,  // float32 if an operand or the output is, integers otherwise
  Real,  // always float32: integers are converted first
  Test   // Bool (or any type), 1 or 0
};

/// Applies `functions` to `operands` (at most three), broadcast to the output.
Status map(const Operand* operands, uint32_t count, const Tensor& output, const Functions& functions,
           Result result, const Parameter* parameters = nullptr);

}  // namespace carina::rt::kernels
