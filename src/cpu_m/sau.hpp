// SPDX-License-Identifier: Apache-2.0
// Which addresses are Secure: the security attribution unit (SAU) and the board's implementation-defined
// attribution (IDAU).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cpu_m/protection_region.hpp"

namespace carina::cpu_m {

class Sau {
 public:
  static constexpr uint32_t kRegions = 8;
  /// Bits of SAU_CTRL.
  static constexpr uint32_t kEnable = 1, kAllNonSecure = 2;

  /// Bit 1 of the limit: Non-secure callable.
  using Region = ProtectionRegion;
  std::array<Region, kRegions> regions;
  uint32_t control = 0;
  /// Regions of 256 MiB (bits 31:28 of an address) that the IDAU marks Secure, and those of them that may
  /// hold Secure gateways.
  uint16_t secureRegions = 0, callableRegions = 0;

  struct Attribution {
    bool secure = true;
    bool callable = false;          // Secure, and Non-secure callable
    bool exempt = false;            // private peripherals: not attributed
    bool wholePage = true;          // applies to the whole page (4 KiB)
    std::optional<uint8_t> region;  // of the SAU, if exactly one contains the address
  };
  Attribution attribution(uint32_t address) const;
};

}  // namespace carina::cpu_m
