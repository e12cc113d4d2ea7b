// SPDX-License-Identifier: Apache-2.0
// Memo of block searches (block_memo.hpp).
#include "compiler/schedule/block_memo.hpp"

#include <functional>

#include "compiler/schedule/operation_builder.hpp"

namespace carina::compiler {
namespace {

/// Results that are kept; in a network with more distinct operations, the others are searched again.
constexpr size_t kMaxAnswers = 8192;

}  // namespace

npu::KernelOperation withoutPlaces(npu::KernelOperation op) {
  const auto place = [](npu::FeatureMap& map) {
    map.base = {};
    map.zeroPoint = 0;
  };
  place(op.ifm);
  place(op.ofm);
  if (op.ifm2) place(*op.ifm2);
  op.elementwise.scalar = 0;
  op.elementwise.ifmScale = op.elementwise.ifm2Scale = op.ofmScale = {};
  op.activation.slot = 0;
  op.block = op.microblock = {};
  op.ifmBufferEnd = op.ifm2BufferStart = op.accumulatorStart = op.blockDependency = 0;
  return op;
}

namespace {

bool same(const npu::TimingContext& a, const npu::TimingContext& b) {
  return a.ifm == b.ifm && a.ifm2 == b.ifm2 && a.ofm == b.ofm && a.weights == b.weights &&
         a.scales == b.scales && a.weightBytes == b.weightBytes && a.scaleBytes == b.scaleBytes &&
         a.zeroWeights == b.zeroWeights && a.chainedRate == b.chainedRate;
}

}  // namespace

bool BlockMemo::Key::operator==(const Key& other) const {
  if (traversals != other.traversals || wanted != other.wanted || chain != other.chain ||
      contexts.size() != other.contexts.size())
    return false;
  for (size_t i = 0; i < contexts.size(); ++i) {
    if (!same(contexts[i], other.contexts[i])) return false;
  }
  return true;
}

size_t BlockMemo::Hash::operator()(const Key& key) const {
  size_t hash = (key.traversals ? 1 : 0) + (key.wanted ? 2 : 0);
  const auto add = [&hash](auto value) {
    hash = (hash ^ std::hash<int64_t>()(static_cast<int64_t>(value))) * size_t{0x9e3779b97f4a7c15};
    hash ^= hash >> 32;
  };
  const auto addMap = [&add](const npu::FeatureMap& map) {
    add(map.height);
    add(map.width);
    add(map.depth);
    add(map.type);
    add(map.layout);
    add(map.strideX);
    add(map.strideY);
  };
  for (size_t i = 0; i < key.chain.size(); ++i) {
    const npu::KernelOperation& op = key.chain[i];
    const npu::TimingContext& context = key.contexts[i];
    add(op.kind);
    addMap(op.ifm);
    addMap(op.ofm);
    if (op.ifm2) addMap(*op.ifm2);
    add(op.kernel.height);
    add(op.kernel.width);
    add(op.elementwise.mode);
    add(op.activation.table);
    add(context.ifm);
    add(context.ofm);
    add(context.weights);
    add(context.weightBytes);
  }
  return hash;
}

BlockChoice BlockChoice::of(const npu::KernelOperation& op) {
  BlockChoice choice{op.block, op.microblock, op.ifmBufferEnd, op.ifm2BufferStart, op.accumulatorStart};
  choice.twoRows = op.inTwoRows;
  if (op.weights) {
    choice.traversal = op.weights->traversal;
    choice.sparse = op.weights->sparse;
  }
  return choice;
}

void BlockChoice::apply(npu::KernelOperation& op) const {
  if (twoRows != op.inTwoRows) op = twoRows ? inTwoRows(op) : inOneRow(op);
  op.block = block;
  op.microblock = microblock;
  op.ifmBufferEnd = ifmBufferEnd;
  op.ifm2BufferStart = ifm2BufferStart;
  op.accumulatorStart = accumulatorStart;
  if (!op.weights) return;
  op.weights->traversal = traversal;
  op.weights->sparse = sparse;
}

Result<ChosenBlocks> BlockMemo::choose(std::span<const npu::KernelOperation> chain,
                                       std::span<const npu::TimingContext> contexts, bool traversals,
                                       const std::optional<npu::WeightOrder>& wanted) {
  Key key;
  key.traversals = traversals;
  key.wanted = wanted;
  std::vector<npu::KernelOperation> chosen(chain.begin(), chain.end());
  if (chosen[0].inTwoRows) chosen[0] = inOneRow(chosen[0]);
  for (const npu::KernelOperation& op : chosen) key.chain.push_back(withoutPlaces(op));
  key.contexts.assign(contexts.begin(), contexts.end());
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = answers_.find(key); known != answers_.end()) return known->second;
    ++searches_;
  }
  const npu::WeightOrder* order = wanted ? &*wanted : nullptr;
  CARINA_RETURN_IF_ERROR(chosen.size() > 1 ? chooseChainBlock(chosen, contexts, order)
                         : traversals      ? chooseBlockAndTraversal(chosen[0], contexts[0], order)
                                           : chooseBlock(chosen[0], contexts[0]));
  ChosenBlocks answer;
  answer.cost = npu::estimateChain(chosen, contexts);
  if (chosen.size() == 1 && allowsTwoRows(chosen[0], *contexts[0].machine->target)) {
    npu::KernelOperation rows = inTwoRows(chosen[0]);
    const Status found =
        traversals ? chooseBlockAndTraversal(rows, contexts[0], order) : chooseBlock(rows, contexts[0]);
    const npu::OperationCost cost = npu::estimate(rows, contexts[0]);
    if (found.ok() && cost.total < answer.cost.total) {
      chosen[0] = rows;
      answer.cost = cost;
    }
  }
  for (const npu::KernelOperation& op : chosen) answer.blocks.push_back(BlockChoice::of(op));
  const std::lock_guard lock(mutex_);
  if (answers_.size() < kMaxAnswers) answers_.emplace(std::move(key), answer);
  return answer;
}

size_t BlockMemo::searches() const {
  const std::lock_guard lock(mutex_);
  return searches_;
}

}  // namespace carina::compiler
