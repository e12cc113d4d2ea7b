// SPDX-License-Identifier: Apache-2.0
// Firmware in Intel's hexadecimal object format (.hex), as written by tools that merge images.
#pragma once

#include <optional>
#include <vector>

#include "platform/elf.hpp"

namespace carina::platform {

struct HexFile {
  struct Run {
    uint32_t address = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Run> runs;          // of contiguous records, in file order
  std::optional<uint32_t> entry;  // from a start address record
};

/// Whether the bytes start like such a file.
bool isHexFile(ByteSpan bytes);
/// Errors name the line.
Result<HexFile> readHexFile(ByteSpan bytes);
/// The runs of a file as segments, which borrow them.
ElfImage imageOf(const HexFile& file);

}  // namespace carina::platform
