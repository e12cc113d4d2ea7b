// SPDX-License-Identifier: Apache-2.0
// Reads a call's arguments. The first failure is sticky, so a kernel reads all arguments and checks once.
#pragma once

#include "elements.hpp"

namespace carina::rt::kernels {

/// An IntList argument; `given` is false for Null.
struct IntegerList {
  int64_t items[kMaxRank] = {};
  uint32_t count = 0;
  bool given = false;
  /// Item i; a single item applies to every i.
  int64_t each(uint32_t i) const { return items[count == 1 ? 0 : i]; }
};

/// An operand of an elementwise kernel: a tensor, or a number.
struct Operand {
  const Tensor* tensor = nullptr;
  float real = 0;
  int64_t integer = 0;
  bool isReal = false;  // elements are float32, or the number is a float
};

/// Returned pointers and numbers are valid only while ok().
class Call {
 public:
  /// `arguments` is the number of arguments in the operator's schema, outputs included.
  Call(KernelContext& context, uint32_t arguments);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  /// Fails with `status` unless `good` or already failed.
  void require(bool good, const Status& status) {
    if (!good && ok()) status_ = status;
  }

  /// Tensors of float32, integers or Bool; others are a TypeMismatch.
  const Tensor* tensor(uint32_t i);
  const Tensor* optionalTensor(uint32_t i);  // null for Null
  Tensor* output(uint32_t i);
  /// Number of tensors in list argument i, and its k-th tensor. Absent ones are null.
  uint32_t tensorCount(uint32_t i);
  Tensor* tensorAt(uint32_t i, uint32_t k);

  int64_t integer(uint32_t i);
  int64_t integer(uint32_t i, int64_t otherwise) { return context_.isNull(i) ? otherwise : integer(i); }
  double real(uint32_t i);  // Int, Bool or Double
  double real(uint32_t i, double otherwise) { return context_.isNull(i) ? otherwise : real(i); }
  bool boolean(uint32_t i);
  IntegerList integers(uint32_t i);  // Null gives an empty list
  /// Copies the doubles of a DoubleList to `into`; returns the count, 0 for Null.
  uint32_t reals(uint32_t i, double* into, uint32_t capacity);
  bool isNull(uint32_t i) { return context_.isNull(i); }
  /// Whether argument i is the string `text`.
  bool isText(uint32_t i, const char* text);
  /// A dimension of a tensor of this rank; scalars count as rank 1.
  uint32_t dimension(uint32_t i, uint32_t rank);
  /// A dimension of this tensor; 0 if it is null because an argument was rejected before.
  uint32_t dimension(uint32_t i, const Tensor* tensor) {
    return tensor == nullptr ? 0 : dimension(i, tensor->rank);
  }
  /// Tensor or number.
  Operand operand(uint32_t i);

 private:
  KernelContext& context_;
  Status status_;
};

/// [-rank, rank) to [0, rank); false when outside. Scalars count as rank 1.
inline bool wrapDimension(int64_t dim, uint32_t rank, uint32_t* result) {
  const int64_t limit = rank == 0 ? 1 : rank;
  if (dim < 0) dim += limit;
  if (dim < 0 || dim >= limit) return false;
  *result = static_cast<uint32_t>(dim);
  return true;
}

constexpr Status outOfRange(uint32_t argument) {
  return failure(Code::InvalidArgument, "an operator argument is out of range", argument);
}

}  // namespace carina::rt::kernels
