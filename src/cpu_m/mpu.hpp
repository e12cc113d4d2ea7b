// SPDX-License-Identifier: Apache-2.0
// The memory protection unit of Armv8-M (PMSAv8): regions of 32-byte granules, and the default memory map.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cpu_m/protection_region.hpp"

namespace carina::cpu_m {

class Mpu {
 public:
  static constexpr uint32_t kRegions = 16;
  /// Bits of MPU_CTRL.
  static constexpr uint32_t kEnable = 1, kDuringFaults = 2, kPrivilegedDefault = 4;

  /// RBAR: BASE 31:5, SH 4:3, AP 2:1, XN 0. RLAR: LIMIT 31:5, PXN 4, AttrIndx 3:1, EN 0.
  using Region = ProtectionRegion;
  std::array<Region, kRegions> regions;
  uint32_t control = 0;

  bool enabled() const { return (control & kEnable) != 0; }
  /// The region that contains an address, if exactly one does.
  std::optional<uint8_t> regionOf(uint32_t address) const;
  /// Permissions at an address. `negativePriority`: in an NMI or HardFault handler, or with FAULTMASK set.
  Permission permission(uint32_t address, bool privileged, bool negativePriority) const;
};

}  // namespace carina::cpu_m
