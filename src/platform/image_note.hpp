// SPDX-License-Identifier: Apache-2.0
// What `carina firmware` notes in an image, so that it can be run without saying again for what it was built.
#pragma once

#include <optional>
#include <string>

#include "base/tensor.hpp"

namespace carina::platform {

struct ImageNote {
  std::string platform;                  // "corstone-300"
  std::string core;                      // "cortex-m33"
  std::string target;                    // "ethos-u55-128", or "cpu"
  std::string systemConfig, memoryMode;  // empty for target cpu
  std::string memories = {};             // what of them is not stock (npu::describeMemories)
};

/// From section .note.carina of an ELF file (untrusted): an ELF note of the owner "Carina" that holds
/// zero-terminated strings in the order above; images of older versions have none behind the memory mode.
/// Nothing when there is none or it says something else.
std::optional<ImageNote> readImageNote(ByteSpan elf);

}  // namespace carina::platform
