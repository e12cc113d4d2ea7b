// SPDX-License-Identifier: Apache-2.0
// Block searches that have been made before: networks repeat layers, and every try at a schedule asks again.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/schedule/block_search.hpp"

namespace carina::compiler {

/// An operation without what neither the rules for blocks nor the timing model look at: addresses, zero
/// points, scales, and the blocks themselves.
npu::KernelOperation withoutPlaces(npu::KernelOperation op);

/// What the block search decides about an operation.
struct BlockChoice {
  npu::BlockShape block, microblock;
  int32_t ifmBufferEnd = 0, ifm2BufferStart = 0, accumulatorStart = 0;
  npu::Traversal traversal = npu::Traversal::DepthFirst;  // of weights, where the operation has any
  bool sparse = false;

  static BlockChoice of(const npu::KernelOperation& op);
  void apply(npu::KernelOperation& op) const;
};

/// Blocks of one operation, or of a U85 chain, and what it costs in them.
struct ChosenBlocks {
  std::vector<BlockChoice> blocks;  // of each member; none: not searched
  npu::OperationCost cost;
};

/// Answers of the block search by what it looks at: operations without their addresses, zero points and
/// scales, and where their data lies. For one machine; may be used by several threads.
class BlockMemo {
 public:
  /// As chooseChainBlock() where there are several operations, else as chooseBlockAndTraversal() or, without
  /// `traversals`, chooseBlock(), which no order of weights is wanted of.
  Result<ChosenBlocks> choose(std::span<const npu::KernelOperation> chain,
                              std::span<const npu::TimingContext> contexts, bool traversals,
                              const std::optional<npu::WeightOrder>& wanted = std::nullopt);

  /// Searches that were made, without those that were remembered.
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
