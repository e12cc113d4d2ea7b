// SPDX-License-Identifier: Apache-2.0
// CPU kernels: access to their arguments, and lookup by a method. A table lists only the kernels that a
// program needs, so that the linker drops the others.
#pragma once

#include "carina/arena.hpp"
#include "carina/value.hpp"

namespace carina::rt {

/// One call: arguments are values of the method, in the order of the operator's out-variant schema.
class KernelContext {
 public:
  KernelContext(Span<Value> values, const int32_t* arguments, uint32_t count, Arena* temporary)
      : values_(values), arguments_(arguments), count_(count), temporary_(temporary) {}

  uint32_t count() const { return count_; }
  Value& argument(uint32_t i) { return values_[static_cast<size_t>(arguments_[i])]; }
  Arena& temporary() { return *temporary_; }

  /// The typed argument, or a Status that names the argument.
  Status tensor(uint32_t i, Tensor** tensor);
  /// A tensor that the kernel may write: Code::InvalidArgument for constants.
  Status output(uint32_t i, Tensor** tensor);
  Status integer(uint32_t i, int64_t* value);
  Status real(uint32_t i, double* value);
  Status boolean(uint32_t i, bool* value);
  /// Int, Bool or Double as double.
  Status scalar(uint32_t i, double* value);
  bool isNull(uint32_t i) { return i < count_ && argument(i).kind == ValueKind::Null; }
  /// Copies the integers of an IntList to `into`, at most `capacity`.
  Status integers(uint32_t i, int64_t* into, uint32_t capacity, uint32_t* count);
  /// Tensors of a TensorList or OptionalTensorList, and the k-th of them (null when absent).
  Status tensorCount(uint32_t i, uint32_t* count);
  Status tensorAt(uint32_t i, uint32_t k, Tensor** tensor);

 private:
  Span<Value> values_;
  const int32_t* arguments_;
  uint32_t count_;
  Arena* temporary_;
};

using KernelFunction = Status (*)(KernelContext&);

/// `name` is "namespace::name.overload" as the program spells it, e.g. "cortex_m::quantize_per_tensor.out".
struct Kernel {
  const char* name;
  KernelFunction run;
};
using KernelTable = Span<const Kernel>;

/// All kernels of this library (for host tools; firmware lists its own).
KernelTable allKernels();
/// The function of a kernel in a table; null if the table does not have it.
KernelFunction findKernel(KernelTable table, Text name, Text overload);

}  // namespace carina::rt
