// SPDX-License-Identifier: Apache-2.0
// Wait states of a board's memories, as given in options: "sram=1,ddr=30,cache=16".
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cpu_m/wait_states.hpp"
#include "platform/board.hpp"

namespace carina::platform {

/// Core cycles until a memory's first beat arrives, beyond those of a tightly coupled memory. By default,
/// there are no wait states.
struct MemoryTiming {
  struct Entry {
    const RamBlock* memory;
    uint32_t cycles;
  };
  std::vector<Entry> entries;
  uint32_t cacheKiB = 32;  // each of the two caches; CCR enables them
};

/// `text` is a list of NAME=CYCLES with the names of the board's memories in lower case ("boot-rom"), and
/// cache=KIB. An Error names the invalid item.
Result<MemoryTiming> parseMemoryTiming(std::string_view text, const Board& board);

/// The wait states to count; nullopt if no memory has any.
std::optional<cpu_m::WaitStates> waitStatesOf(const MemoryTiming& timing);

}  // namespace carina::platform
