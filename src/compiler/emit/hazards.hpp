// SPDX-License-Identifier: Apache-2.0
// What may overlap: BLOCKDEP between consecutive kernel operations, waits between kernel operations and DMA.
// Rules: ethosu-command-stream 2.2 and 2.3, ethosu-architecture 1.6.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::compiler {

/// Bytes of a region (or of the table memory) that an operation touches.
struct MemoryRange {
  int region = 0;  // kTableMemory for the on-chip table memory
  uint64_t begin = 0, end = 0;
  bool write = false;

  bool conflicts(const MemoryRange& other) const {
    return region == other.region && begin < other.end && other.begin < end && (write || other.write);
  }
};
constexpr int kTableMemory = -1;

/// Smallest range that holds all elements of a map. `height` and `width` as stored in memory.
MemoryRange mapRange(const npu::FeatureMap& map, int64_t height, int64_t width, int64_t depth, bool write);

/// Everything that a kernel operation reads and writes, tables included.
std::vector<MemoryRange> memoryRanges(const npu::KernelOperation& op, const npu::Target& target);
std::vector<MemoryRange> memoryRanges(const npu::DmaOperation& op, const npu::Target& target);

/// The largest safe BLOCKDEP of `op` after `previous` (null: it is the first).
int32_t blockDependency(const npu::KernelOperation* previous, const npu::KernelOperation& op,
                        const npu::Target& target);

/// Follows the stream and determines the waits that each operation needs before it.
class WaitTracker {
 public:
  explicit WaitTracker(const npu::Target& target) : target_(target) {}

  std::vector<npu::Operation> before(const npu::KernelOperation& op);
  std::vector<npu::Operation> before(const npu::DmaOperation& op);

 private:
  using Queue = std::deque<std::vector<MemoryRange>>;  // newest last
  /// Number of entries newer than the latest conflicting one, which is removed together with all older ones.
  static std::optional<int32_t> conflict(Queue& queue, const std::vector<MemoryRange>& ranges);
  static void push(Queue& queue, std::vector<MemoryRange> ranges, size_t limit);

  const npu::Target& target_;
  Queue kernels_, transfers_;
};

}  // namespace carina::compiler
