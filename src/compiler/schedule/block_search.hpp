// SPDX-License-Identifier: Apache-2.0
// Chooses the blocks of an operation: all legal OFM blocks (and, on U85, microblocks), judged by the timing
// model.
#pragma once

#include <span>

#include "npu/isa/operation.hpp"
#include "npu/timing/timing.hpp"
#include "npu/weights/weight_order.hpp"

namespace carina::compiler {

/// Sets block, microblock and, on U55/U65, the SHRAM layout of `op` to the cheapest legal choice. Fails if
/// not even the smallest block fits the on-chip buffers.
Status chooseBlock(npu::KernelOperation& op, const npu::TimingContext& context);

/// Like chooseBlock, but also chooses the traversal of a convolution's weights, and whether they are encoded
/// as sparse if `op` permits it. `wanted`: only blocks that read the weights in that order (null: all); fails
/// if there are none.
Status chooseBlockAndTraversal(npu::KernelOperation& op, const npu::TimingContext& context,
                               const npu::WeightOrder* wanted = nullptr);

/// Whether chooseBlock would find a block: fails if not even the smallest one fits.
Status checkBlock(npu::KernelOperation op, const npu::Target& target);

/// Lower bound on the cycles for which the multipliers or the output unit, whichever takes longer, are busy
/// with an operation or U85 chain, over all blocks, microblocks and orders of weights: nothing waits for
/// memory. The weights of the first operation must not be encoded yet.
npu::Cycles leastEngineCycles(std::span<npu::KernelOperation> chain,
                              std::span<const npu::TimingContext> contexts);

/// One block and microblock for all operations of a U85 chain, and the traversal of the first one's weights.
Status chooseChainBlock(std::span<npu::KernelOperation> chain, std::span<const npu::TimingContext> contexts,
                        const npu::WeightOrder* wanted = nullptr);

}  // namespace carina::compiler
