// SPDX-License-Identifier: Apache-2.0
// From a node of the npu dialect to the hardware operation of one target, with everything but blocks, weight
// streams and final addresses filled in.
#pragma once

#include <optional>

#include "compiler/storage/storage.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// Feature map bases are relative to the start of their buffers, regions are 0. On U85 the microblock is left
/// unset. Convolutions get weights with no streams and the usual traversal, CODED_CONV the place of each
/// stream relative to the first and its block depth.
npu::KernelOperation buildOperation(const ir::Node* node, const Storage& storage, const npu::Target& target);

/// A 1x1 average or sum, the copy of pooling, as a product with 1: the same results from the elementwise
/// unit, which mostly needs fewer cycles. Nothing when `op` is something else, or the unit would not scale
/// it.
std::optional<npu::KernelOperation> asProduct(const npu::KernelOperation& op, const npu::Target& target);

/// A constant operand that fits the scalar register.
bool isScalar(const ir::Value* value, const npu::Target& target);

/// Which operand of the node each feature map of the operation is: U55 and U65 swap inputs so that only the
/// second broadcasts. ifm2 null when there is none in memory.
struct OperationInputs {
  const ir::Value* ifm = nullptr;
  const ir::Value* ifm2 = nullptr;  // of CODED_CONV the weight streams, which are no feature map
};
OperationInputs operationInputs(const ir::Node* node, const npu::Target& target);

/// "CONV", "POOL MAX", "ELEMENTWISE ADD", ...: for reports.
std::string operationKindText(const npu::KernelOperation& op);

}  // namespace carina::compiler
