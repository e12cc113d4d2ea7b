// SPDX-License-Identifier: Apache-2.0
// Blocks between branches and their targets do not overlap: a branch waits until everything is complete, so
// their cycles add up. Backward branches close loops; without them, the blocks are in an order in which every
// path goes forward.
#include "npu/timing/way.hpp"

#include <algorithm>
#include <vector>

namespace carina::npu {
namespace {

/// Operations [first, last], executed in sequence.
struct Block {
  size_t first = 0, last = 0;
};

/// a * b, limited so that many of them can be added without overflow.
int64_t product(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 48;
  return a == 0 || b <= kMost / a ? a * b : kMost;
}

/// How often loops execute the operation at an offset; offsets must ascend. Loops are nested or disjoint.
class LoopIterations {
 public:
  explicit LoopIterations(std::span<const CountedLoop> loops) : loops_(loops.begin(), loops.end()) {
    std::sort(loops_.begin(), loops_.end(), [](const CountedLoop& a, const CountedLoop& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
  }

  int64_t at(uint32_t offset) {
    while (!open_.empty() && open_.back().end <= offset) open_.pop_back();
    for (; next_ < loops_.size() && loops_[next_].begin <= offset; ++next_) {
      const CountedLoop& loop = loops_[next_];
      if (loop.end <= offset) continue;
      const int64_t around = open_.empty() ? 1 : open_.back().turns;
      open_.push_back({loop.begin, loop.end, product(around, std::max<int64_t>(loop.turns, 1))});
    }
    return open_.empty() ? 1 : open_.back().turns;
  }

 private:
  std::vector<CountedLoop> loops_;
  size_t next_ = 0;
  std::vector<CountedLoop> open_;  // with the iterations of all enclosing loops
};

class Ways {
 public:
  explicit Ways(std::span<const PlacedOperation> operations) : operations_(operations) { findBlocks(); }

  Cycles longest(const Machine& machine, const timing::Rules& rules,
                 std::span<const CountedLoop> loops) const {
    constexpr Cycles kUnreached = -1;
    std::vector<Cycles> before(blocks_.size() + 1, kUnreached);  // of the longest path to each block
    before[0] = 0;
    Cycles most = 0;
    LoopIterations turns(loops);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const int64_t times = turns.at(operations_[blocks_[b].last].offset);
      if (before[b] == kUnreached) continue;
      const Cycles behind = before[b] + product(cyclesOf(blocks_[b], machine, rules), times);
      most = std::max(most, behind);
      for (const size_t next : followers(b)) before[next] = std::max(before[next], behind);
    }
    return most;
  }

 private:
  const Branch* branchOf(size_t operation) const {
    return std::get_if<Branch>(&operations_[operation].operation);
  }

  /// The first operation at or after a byte offset: set-commands may precede it.
  size_t operationAt(uint32_t offset) const {
    const auto found =
        std::lower_bound(operations_.begin(), operations_.end(), offset,
                         [](const PlacedOperation& placed, uint32_t at) { return placed.offset < at; });
    return static_cast<size_t>(found - operations_.begin());
  }

  void findBlocks() {
    std::vector<bool> begins(operations_.size() + 1, false);
    if (!operations_.empty()) begins[0] = true;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Branch* branch = branchOf(i);
      if (!branch) continue;
      begins[i + 1] = true;
      begins[operationAt(branch->target)] = true;
    }
    blockAt_.assign(operations_.size() + 1, 0);
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (begins[i]) blocks_.push_back({i, i});
      blocks_.back().last = i;
      blockAt_[i] = blocks_.size() - 1;
    }
    blockAt_[operations_.size()] = blocks_.size();
    isLoop_.assign(blocks_.size() + 1, false);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const Branch* branch = branchOf(blocks_[b].last);
      if (branch && targetOf(*branch) <= b) isLoop_[targetOf(*branch)] = true;
    }
  }

  size_t targetOf(const Branch& branch) const { return blockAt_[operationAt(branch.target)]; }

  std::vector<size_t> followers(size_t b) const {
    const Branch* branch = branchOf(blocks_[b].last);
    std::vector<size_t> next;
    // After a loop, and into one whose test is at its end.
    const bool goesOn = !branch || branch->ifResult || targetOf(*branch) <= b || isLoop_[b + 1];
    if (goesOn) next.push_back(b + 1);
    if (branch && targetOf(*branch) > b) next.push_back(targetOf(*branch));
    return next;
  }

  Cycles cyclesOf(const Block& block, const Machine& machine, const timing::Rules& rules) const {
    Timeline timeline(machine, rules);
    for (size_t i = block.first; i <= block.last; ++i)
      timeline.add(operations_[i].operation, operations_[i].offset);
    return timeline.total();
  }

  std::span<const PlacedOperation> operations_;
  std::vector<Block> blocks_;
  std::vector<size_t> blockAt_;  // of each operation
  std::vector<bool> isLoop_;     // backward branches lead to the block
};

}  // namespace

Cycles longestPath(std::span<const PlacedOperation> operations, const Machine& machine,
                   const timing::Rules& rules, std::span<const CountedLoop> loops) {
  return Ways(operations).longest(machine, rules, loops);
}

}  // namespace carina::npu
