// SPDX-License-Identifier: Apache-2.0
// Boards that carry an Ethos-U, as rows of boards.json: their memories, how fast those are, and where that is
// said.
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
      holds;  // kinds of memory of a system configuration, "data": what the CPU alone uses

  bool takes(std::string_view kind) const;
};

struct Board {
  std::string name, title;  // "alif-e7-hp"
  std::string cpu;          // "cortex-m55"
  bool helium = false;
  std::vector<std::string> npus;  // targets; none: its NPU is no Ethos, as `note` says
  std::string systemConfig, ini;  // a section of vela.ini of that name; empty: the target's default ...
  double clockHz = 0;             // ... at this clock; 0: at its own
  std::string memoryMode;         // empty: the target's default
  std::vector<BoardMemory> memories;
  std::string note, source, date;
};

std::span<const Board> boards();
/// Error: no such board, with the nearest name.
Result<const Board*> findBoardRow(std::string_view name);

/// The NPU and memories of a board. `target` and `memoryMode` may be empty: the board's own. Errors: the
/// board has no Ethos, another NPU, or the target has no such mode.
Result<npu::Machine> machineOf(const Board& board, std::string_view target, std::string_view memoryMode);

}  // namespace carina::firmware
