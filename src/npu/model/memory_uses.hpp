// SPDX-License-Identifier: Apache-2.0
// The memory that an operation reads and writes: ranges that enclose all its accesses (ethosu-command-stream
// 4).
#pragma once

#include <cstdint>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

/// Internal memory (SHRAM, LUT RAM) as an address space of its own, in addition to the regions.
constexpr int32_t kInternalSpace = 100;

struct MemoryUse {
  int32_t space = 0;             // region, or kInternalSpace
  uint64_t first = 0, last = 0;  // bytes
  bool write = false;
  const char* what = "";  // "IFM", "weights", "DMA source", ...
};

/// One entry per map tile, weight stream, table and so on. Ranges of maps include their gaps. Chained maps
/// access no memory.
std::vector<MemoryUse> memoryUses(const Target& target, const KernelOperation& op);
std::vector<MemoryUse> memoryUses(const Target& target, const DmaOperation& op);

}  // namespace carina::npu
