// SPDX-License-Identifier: Apache-2.0
// What a debugger has had the board do since reset. The board is deterministic, so going through it once more
// leads to the same place: that is how a debugger steps back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/cpu.hpp"

namespace carina::platform {

struct DebugHistory {
  struct Place {
    uint64_t instructions = 0, entries = 0;  // executed; exceptions entered
  };
  struct MemoryChange {
    uint32_t address;
    std::vector<std::byte> bytes;
  };
  /// From one stop to the next.
  struct Leg {
    std::unique_ptr<State> registers;  // what the debugger has made of them before it
    std::vector<MemoryChange> memory;
    bool step = false;    // one instruction, while interrupts wait
    bool leaves = false;  // begins with a step off a breakpoint
    bool loose = false;   // ends as soon as the instructions have been executed
    Place end;
  };
  static constexpr size_t kMostLegs = size_t{1} << 20;
  std::vector<Leg> legs;
  std::string impossible;             // why there is no way back; empty: there is
  bool again = false;                 // the board starts anew and goes through the legs
  std::vector<uint32_t> breakpoints;  // at the time of the step back
  /// Going through them looks for breakpoints, too: for the latest one.
  bool searches = false;
  struct Found {
    size_t leg;
    uint64_t instructions;
  };
  std::optional<Found> found;

  /// Ends at what was found, or at the beginning.
  void endAtFound() {
    searches = false;
    legs.resize(found ? found->leg + 1 : 0);
    if (!found) return;
    const uint64_t start = legs.size() > 1 ? legs[legs.size() - 2].end.instructions : 0;
    if (legs.back().step || found->instructions <= start) {
      legs.pop_back();
    } else {
      legs.back().end.instructions = found->instructions;
      legs.back().loose = true;
    }
    found.reset();
  }

  /// Takes back the last instruction. False: there is none.
  bool stepBack() {
    if (legs.empty()) return false;
    Leg& last = legs.back();
    const uint64_t start = legs.size() > 1 ? legs[legs.size() - 2].end.instructions : 0;
    if (last.step || last.end.instructions <= start + 1) {
      legs.pop_back();
    } else {
      --last.end.instructions;
      last.loose = true;
    }
    return true;
  }
};

}  // namespace carina::platform
