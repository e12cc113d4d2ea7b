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
/// unset. Convolutions get weights without streams and the preferred traversal, CODED_CONV the offset of each
/// stream from the first and its block depth.
npu::KernelOperation buildOperation(const ir::Node* node, const Storage& storage, const npu::Target& target);

/// A 1x1 average or sum, which is how pooling copies, as a product with 1: the same results from the
/// elementwise unit, usually in fewer cycles. Nothing if `op` is something else, or the unit would not scale
/// it.
std::optional<npu::KernelOperation> asProduct(const npu::KernelOperation& op, const npu::Target& target);

/// Whether a pointwise convolution over one row of positions may compute it as two rows. Microblocks of 2 x 2
/// positions leave half of their height idle in a single row of odd length (an even one is covered by 1 x 4),
/// and blocks are twice as high as the row: with two rows, a block covers twice as many positions, and the
/// weights are read half as often. Rows of odd length share the middle position, which both compute to the
/// same result.
bool allowsTwoRows(const npu::KernelOperation& op, const npu::Target& target);

/// The operation over two such rows instead of one (KernelOperation::inTwoRows), and back.
npu::KernelOperation inTwoRows(npu::KernelOperation op);
npu::KernelOperation inOneRow(npu::KernelOperation op);

/// Whether a value is a constant that fits the scalar register.
bool isScalar(const ir::Value* value, const npu::Target& target);

/// The operand of the node behind each feature map of the operation: U55 and U65 swap inputs so that only the
/// second is broadcast. Null if it is not in memory.
struct OperationInputs {
  const ir::Value* ifm = nullptr;
  const ir::Value* ifm2 = nullptr;  // CODED_CONV: the weight streams, which are not a feature map
};
OperationInputs operationInputs(const ir::Node* node, const npu::Target& target);

/// "CONV", "POOL MAX", "ELEMENTWISE ADD", ...: for reports.
std::string operationKindText(const npu::KernelOperation& op);

}  // namespace carina::compiler
