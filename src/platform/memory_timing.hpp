// SPDX-License-Identifier: Apache-2.0
// Wait states of a board's memories, as options name them: "sram=1,ddr=30,cache=16".
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cpu_m/wait_states.hpp"
#include "platform/board.hpp"

namespace carina::platform {

/// Cycles of the core until a memory's first beat is there, beyond those of a tightly coupled memory. Nothing
/// waits by default.
struct MemoryTiming {
  struct Entry {
    const RamBlock* memory;
    uint32_t cycles;
  };
  std::vector<Entry> entries;
  uint32_t cacheKiB = 32;  // each of the two caches; CCR turns them on
};

/// `text` is a list of NAME=CYCLES with the names of the board's memories in lower case ("boot-rom"), and
/// cache=KIB. An Error names what is not one of them.
Result<MemoryTiming> parseMemoryTiming(std::string_view text, const Board& board);

/// What counts it; nothing when no memory waits.
std::optional<cpu_m::WaitStates> waitStatesOf(const MemoryTiming& timing);

}  // namespace carina::platform
