// SPDX-License-Identifier: Apache-2.0
// A peripheral: registers at offsets from its base.
#pragma once

#include <cstdint>

namespace carina::platform {

/// Address space that most devices occupy.
constexpr uint32_t kDeviceFrame = 0x1000;

class Peripheral {
 public:
  virtual ~Peripheral() = default;
  /// Offsets are multiples of 4; the platform converts smaller accesses.
  virtual uint32_t read(uint32_t offset) = 0;
  virtual void write(uint32_t offset, uint32_t value) = 0;
};

}  // namespace carina::platform
