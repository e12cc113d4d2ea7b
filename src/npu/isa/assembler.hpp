// SPDX-License-Identifier: Apache-2.0
// Assembles text into a command stream or driver payload: the inverse of disassembler.hpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

struct Assembly {
  Family family = Family::U55;
  bool isPayload = false;
  std::vector<uint32_t> stream;  // the commands
  std::vector<uint8_t> bytes;    // the payload, or the stream alone, little-endian
};

/// Errors name the line: unknown directives, commands, fields and enum names, values that do not fit. Omitted
/// fields are 0 (or the smallest value that a "minus one" field can hold).
Result<Assembly> assemble(std::string_view text);

}  // namespace carina::npu
