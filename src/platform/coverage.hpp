// SPDX-License-Identifier: Apache-2.0
// Line coverage of firmware: which lines of its sources were executed, and how often, in lcov's format.
#pragma once

#include <span>
#include <string>

#include "platform/cpu.hpp"
#include "platform/elf.hpp"
#include "platform/line_table.hpp"

namespace carina::platform {

/// The line tables of an image; fails if it has none.
Result<LineTable> lineTableOf(const ElfImage& image, ByteSpan file);

/// The text of an lcov tracefile: per source file its lines (the highest count of their instructions) and
/// functions (the count of the first instruction). `executions` is sorted by address.
std::string lcovText(const ElfImage& image, const LineTable& table,
                     std::span<const Core::Executions> executions);

}  // namespace carina::platform
