// SPDX-License-Identifier: Apache-2.0
// The note that `carina firmware` leaves in an image, so that it can be run without repeating what it was
// built for.
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
  std::string memories = {};             // properties that are not stock (npu::describeMemories)
};

/// Reads section .note.carina of an ELF file (untrusted): an ELF note of the owner "Carina" that holds
/// zero-terminated strings in the order above; images of older versions have none after the memory mode.
/// nullopt if there is none or it has other contents.
std::optional<ImageNote> readImageNote(ByteSpan elf);

}  // namespace carina::platform
