// SPDX-License-Identifier: Apache-2.0
// Boards with an Ethos-U, as rows of boards.json: their memories, the speed of these, and the sources of the
// data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "npu/targets/target.hpp"

namespace carina::firmware {

struct BoardMemory {
  std::string name;  // "SRAM0"
  uint64_t address = 0;
  int64_t bytes = 0;
  std::vector<std::string>
      holds;  // memory kinds of a system configuration; "data": memory that only the CPU uses

  bool takes(std::string_view kind) const;
};

struct Board {
  std::string name, title;  // "alif-e7-hp"
  std::string cpu;          // "cortex-m55"
  bool helium = false;
  std::vector<std::string> npus;  // targets; empty: its NPU is not an Ethos (see `note`)
  std::string systemConfig, ini;  // a section of vela.ini of that name; empty: the target's default ...
  double clockHz = 0;             // ... at this clock; 0: at its own
  std::string memoryMode;         // empty: the target's default
  std::vector<BoardMemory> memories;
  std::string note, source, date;
};

std::span<const Board> boards();
/// Error: no such board; suggests the nearest name.
Result<const Board*> findBoardRow(std::string_view name);

/// The NPU and memories of a board. If `target` or `memoryMode` is empty, the board's own is used. Errors:
/// the board has no Ethos or a different NPU, or the target has no such mode.
Result<npu::Machine> machineOf(const Board& board, std::string_view target, std::string_view memoryMode);

}  // namespace carina::firmware
