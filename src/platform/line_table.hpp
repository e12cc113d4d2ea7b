// SPDX-License-Identifier: Apache-2.0
// Which source line an address comes from: the DWARF line tables (versions 2 to 5) of an executable. The
// bytes are not trusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::platform {

struct ElfImage;

/// Instructions [begin, end) come from a line (from 1 on; 0: from none).
struct SourceRange {
  uint32_t begin, end;
  uint32_t file;  // index into LineTable::files
  uint32_t line;
};

struct LineTable {
  std::vector<std::string> files;  // with their folders, as the compiler recorded them
  /// By address; ranges of code that the linker left out may remain, at addresses where no function is.
  std::vector<SourceRange> ranges;
};

/// The sections that line tables are in; borrowed.
struct LineSections {
  ByteSpan lines;        // .debug_line
  ByteSpan lineStrings;  // .debug_line_str
  ByteSpan strings;      // .debug_str
};

/// Fails when the tables are damaged or of another version.
Result<LineTable> readLineTable(const LineSections& sections);

}  // namespace carina::platform
