// SPDX-License-Identifier: Apache-2.0
// The platforms that images are built for, as the host sees them: their memories and NPU families. Device
// addresses are in firmware/include/firmware/platform.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "npu/targets/target.hpp"

namespace carina::firmware {

struct MemoryRegion {
  std::string_view name;
  uint64_t origin = 0;
  int64_t bytes = 0;
};

struct PlatformInfo {
  std::string_view name;      // "corstone-300"
  std::string_view constant;  // in the target's platform.hpp
  std::span<const npu::Family> families;
  std::span<const MemoryRegion> regions;
  // Regions by use.
  std::string_view vectors, code, data, stack, fast, bulk;

  bool carries(npu::Family family) const;
  const MemoryRegion& region(std::string_view name) const;
};

std::span<const PlatformInfo> platforms();
/// Error lists the known names.
Result<const PlatformInfo*> findPlatform(std::string_view name);

}  // namespace carina::firmware
