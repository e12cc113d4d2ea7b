// SPDX-License-Identifier: Apache-2.0
// Memo of block searches: networks repeat layers, and every try at a schedule repeats the search.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/schedule/block_search.hpp"

namespace carina::compiler {

/// An operation without the fields that neither the block rules nor the timing model depend on: addresses,
/// zero points, scales, and the blocks themselves.
npu::KernelOperation withoutPlaces(npu::KernelOperation op);

/// What the block search decides about an operation.
struct BlockChoice {
  npu::BlockShape block, microblock;
  int32_t ifmBufferEnd = 0, ifm2BufferStart = 0, accumulatorStart = 0;
  npu::Traversal traversal = npu::Traversal::DepthFirst;  // of the weights, if there are any
  bool sparse = false;
  bool twoRows = false;  // inTwoRows()

  static BlockChoice of(const npu::KernelOperation& op);
  void apply(npu::KernelOperation& op) const;
};

/// Blocks of one operation or U85 chain, and its cost in them.
struct ChosenBlocks {
  std::vector<BlockChoice> blocks;  // of each member; none: not searched
  npu::OperationCost cost;
};

/// Results of the block search by its inputs: operations without their addresses, zero points and scales, and
/// the areas of their data. For one machine; may be used by several threads.
class BlockMemo {
 public:
  /// Like chooseChainBlock() for several operations, else like chooseBlockAndTraversal() or, without
  /// `traversals`, like chooseBlock(), which does not support `wanted`.
  Result<ChosenBlocks> choose(std::span<const npu::KernelOperation> chain,
                              std::span<const npu::TimingContext> contexts, bool traversals,
                              const std::optional<npu::WeightOrder>& wanted = std::nullopt);

  /// Number of searches performed, without those answered from the memo.
  size_t searches() const;

 private:
  struct Key {
    std::vector<npu::KernelOperation> chain;
    std::vector<npu::TimingContext> contexts;
    bool traversals = false;
    std::optional<npu::WeightOrder> wanted;
    bool operator==(const Key& other) const;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  mutable std::mutex mutex_;
  std::unordered_map<Key, ChosenBlocks, Hash> answers_;
  size_t searches_ = 0;
};

}  // namespace carina::compiler
