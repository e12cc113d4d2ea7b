// SPDX-License-Identifier: Apache-2.0
// The source line of an address: the DWARF line tables (versions 2 to 5) of an executable. The bytes are
// untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::platform {

struct ElfImage;

/// Instructions [begin, end) of a source line (from 1 on; 0: of none).
struct SourceRange {
  uint32_t begin, end;
  uint32_t file;  // index into LineTable::files
  uint32_t line;
};

struct LineTable {
  std::vector<std::string> files;  // with their folders, as the compiler recorded them
  /// Sorted by address; ranges of code that the linker removed may remain, at addresses without a function.
  std::vector<SourceRange> ranges;
};

/// The sections with line tables; borrowed.
struct LineSections {
  ByteSpan lines;        // .debug_line
  ByteSpan lineStrings;  // .debug_line_str
  ByteSpan strings;      // .debug_str
};

/// Fails if the tables are damaged or of another version.
Result<LineTable> readLineTable(const LineSections& sections);

}  // namespace carina::platform
