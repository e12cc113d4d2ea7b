// SPDX-License-Identifier: Apache-2.0
// Size of an image by component, read from the linker's map.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace carina::firmware {

struct ComponentSize {
  std::string name;  // "loader and verification", ...
  int64_t text = 0;  // code, constants, vectors
  int64_t data = 0;  // initialized variables (also once in the load image)
  int64_t bss = 0;   // zeroed variables
};

struct SizeReport {
  std::vector<ComponentSize> components;  // largest text first
  ComponentSize total;
  int64_t stackBytes = 0;

  /// RAM in addition to arenas, pools and program.
  int64_t ramBytes() const { return total.data + total.bss + stackBytes; }
};

/// Error: `map` is not a map of GNU ld.
Result<SizeReport> readMap(std::string_view map);

}  // namespace carina::firmware
