// SPDX-License-Identifier: Apache-2.0
// Firmware in the hexadecimal object format of Intel (.hex), as tools write it that merge images.
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
  std::vector<Run> runs;          // in the order of the file; each goes on where the record before it ended
  std::optional<uint32_t> entry;  // of a start address record
};

/// Whether the bytes begin as such a file does.
bool isHexFile(ByteSpan bytes);
/// Errors name the line.
Result<HexFile> readHexFile(ByteSpan bytes);
/// Its runs as segments, which borrow them.
ElfImage imageOf(const HexFile& file);

}  // namespace carina::platform
