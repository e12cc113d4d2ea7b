// SPDX-License-Identifier: Apache-2.0
// The central directory of a zip archive (APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3), Zip64 included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina {

/// Value of a 32-bit field whose actual value is in the Zip64 field.
inline constexpr uint32_t kInZip64 = 0xffffffffu;

struct ZipEntry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t size = 0, compressedSize = 0;
  uint64_t dataOffset = 0;  // after the local header
};

/// All entries in directory order. Methods, name lengths and, if the local header has them, sizes and
/// checksums agree with the local headers, and each entry's data is within `archive`. Bytes in front of the
/// archive are allowed, as in self-extracting ones.
Result<std::vector<ZipEntry>> readZipDirectory(ByteSpan archive);

}  // namespace carina
