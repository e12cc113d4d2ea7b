// SPDX-License-Identifier: Apache-2.0
// What MPU and SAU regions have in common: 32-byte granules from a base register to a limit register.
#pragma once

#include <cstdint>

#include "cpu_m/memory.hpp"

namespace carina::cpu_m {

struct ProtectionRegion {
  uint32_t base = 0;   // BASE 31:5
  uint32_t limit = 0;  // LIMIT 31:5, enabled 0

  bool enabled() const { return (limit & 1) != 0; }
  uint32_t first() const { return base & ~kWithinGranule; }
  uint32_t last() const { return limit | kWithinGranule; }
  bool contains(uint32_t address) const { return address >= first() && address <= last(); }
  /// Whether a boundary is inside the page of an address, so that results do not apply to the whole page.
  bool dividesPageOf(uint32_t address) const {
    const uint32_t page = address & ~(Memory::kPageSize - 1), pageEnd = page + (Memory::kPageSize - 1);
    return (first() > page && first() <= pageEnd) || (last() >= page && last() < pageEnd);
  }

 private:
  static constexpr uint32_t kWithinGranule = 31;
};

/// The private peripheral bus, which neither the MPU nor the SAU covers.
constexpr bool isPrivatePeripheral(uint32_t address) {
  return address >> 20 == 0xe00;
}

}  // namespace carina::cpu_m
