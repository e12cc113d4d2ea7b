// SPDX-License-Identifier: Apache-2.0
// Kernels of the float executor: functions prepared once per node, called with the tensors of one run.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "aten/arguments.hpp"
#include "aten/ops.hpp"

namespace carina::aten {

/// One execution of one node. Kernels must take types from here, not from the node: half-precision nodes run
/// in float32.
class Call {
 public:
  struct Operand {
    Tensor* tensor = nullptr;  // null: an absent optional operand
    bool lastUse = false;      // not read again afterwards
  };
  Call(const ir::Node& node, std::span<Operand> operands, std::span<const ir::Type> types,
       std::span<Tensor> results)
      : node_(&node), operands_(operands), types_(types), results_(results) {}

  const ir::Node& node() const { return *node_; }
  size_t numOperands() const { return operands_.size(); }
  /// By flat operand index. Absent optional operands have no flat index: use named() if some may be absent.
  const Tensor& operand(size_t flat) const { return *operands_[flat].tensor; }
  bool present(size_t flat) const { return flat < operands_.size() && operands_[flat].tensor; }
  /// Operand i of the operator's table; null if absent.
  const Tensor* named(size_t i) const {
    size_t flat = 0;
    for (size_t group = 0; group < i; ++group) flat += node_->operandGroup(group).size();
    return node_->operandGroup(i).empty() ? nullptr : operands_[flat].tensor;
  }

  size_t numResults() const { return types_.size(); }
  const ir::Type& type(size_t i = 0) const { return types_[i]; }
  Tensor& result(size_t i = 0) { return results_[i]; }
  /// A new result tensor, which the kernel must fill completely.
  Tensor& allocate(size_t i = 0) {
    results_[i] = Tensor::uninitialized(types_[i].dtype, types_[i].shape);
    return results_[i];
  }
  /// The operand's own memory if this is its last use and the types are equal, otherwise new memory. Pointers
  /// obtained earlier to the operand's bytes stay valid; element i must be read before it is written.
  Tensor& reuseOrAllocate(size_t flat, size_t i = 0) {
    Operand& operand = operands_[flat];
    const bool fits = operand.lastUse && operand.tensor->unique() &&
                      operand.tensor->dtype() == types_[i].dtype &&
                      operand.tensor->shape() == types_[i].shape;
    if (!fits) return allocate(i);
    results_[i] = std::move(*operand.tensor);
    return results_[i];
  }
  /// A copy of the operand to modify as the result; avoids the copy if this is the operand's last use.
  Tensor& copyOf(size_t flat, size_t i = 0) {
    Operand& operand = operands_[flat];
    results_[i] = operand.lastUse ? std::move(*operand.tensor) : *operand.tensor;
    return results_[i];
  }

 private:
  const ir::Node* node_;
  std::span<Operand> operands_;
  std::span<const ir::Type> types_;
  std::span<Tensor> results_;
};

using Kernel = std::function<Status(Call&)>;
/// Decodes attributes and builds what can be reused across runs; fails if the node cannot be computed.
using Prepare = Result<Kernel> (*)(const ir::Node& node);

struct KernelEntry {
  std::string_view op;
  Prepare prepare;
};

/// The kernel of an operator, or null.
Prepare findKernel(std::string_view op);

// One table per family, combined by findKernel.
std::span<const KernelEntry> unaryKernels();
std::span<const KernelEntry> activationKernels();
std::span<const KernelEntry> binaryKernels();
std::span<const KernelEntry> selectionKernels();
std::span<const KernelEntry> reduceKernels();
std::span<const KernelEntry> varianceKernels();
std::span<const KernelEntry> scanKernels();
std::span<const KernelEntry> softmaxKernels();
std::span<const KernelEntry> movementKernels();
std::span<const KernelEntry> joinKernels();
std::span<const KernelEntry> indexKernels();
std::span<const KernelEntry> createKernels();
std::span<const KernelEntry> castKernels();
std::span<const KernelEntry> quantKernels();
std::span<const KernelEntry> matmulKernels();
std::span<const KernelEntry> convKernels();
std::span<const KernelEntry> poolKernels();
std::span<const KernelEntry> normKernels();
std::span<const KernelEntry> resizeKernels();
std::span<const KernelEntry> attentionKernels();
std::span<const KernelEntry> recurrentKernels();
std::span<const KernelEntry> einsumKernels();
std::span<const KernelEntry> distanceKernels();
std::span<const KernelEntry> windowKernels();
std::span<const KernelEntry> orderKernels();
std::span<const KernelEntry> searchKernels();

}  // namespace carina::aten
