// SPDX-License-Identifier: Apache-2.0
// Chooses how an operation is cut into blocks: all legal OFM blocks (and, on U85, microblocks) judged by the
// timing model.
#pragma once

#include <span>

#include "npu/isa/operation.hpp"
#include "npu/timing/timing.hpp"
#include "npu/weights/weight_order.hpp"

namespace carina::compiler {

/// Sets block, microblock and, on U55/U65, the SHRAM layout of `op` to the cheapest legal choice. Fails when
/// not even the smallest block fits the on-chip buffers.
Status chooseBlock(npu::KernelOperation& op, const npu::TimingContext& context);

/// As chooseBlock, and also chooses the traversal of a convolution's weights, and whether they are encoded as
/// sparse where `op` says that they can be. `wanted`: only blocks that read the weights in that order (null:
/// all); fails where there is none.
Status chooseBlockAndTraversal(npu::KernelOperation& op, const npu::TimingContext& context,
                               const npu::WeightOrder* wanted = nullptr);

/// Whether chooseBlock would find one: fails when not even the smallest block fits.
Status checkBlock(npu::KernelOperation op, const npu::Target& target);

/// Cycles that the multipliers or the output unit, whichever takes longer, are busy with an operation or U85
/// chain in the blocks, microblocks and order of weights that are best for that: nothing waits for memory.
/// The weights of the first operation are not encoded yet.
npu::Cycles leastEngineCycles(std::span<npu::KernelOperation> chain,
                              std::span<const npu::TimingContext> contexts);

/// One block and microblock for all operations of a U85 chain, and the traversal of the first one's weights.
Status chooseChainBlock(std::span<npu::KernelOperation> chain, std::span<const npu::TimingContext> contexts,
                        const npu::WeightOrder* wanted = nullptr);

}  // namespace carina::compiler
