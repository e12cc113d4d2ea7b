// SPDX-License-Identifier: Apache-2.0
// What a debugger has made the board do since reset. The board is deterministic: reverse stepping replays
// this history up to an earlier point.
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
  /// Execution from one stop to the next.
  struct Leg {
    std::unique_ptr<State> registers;  // set by the debugger before it, if changed
    std::vector<MemoryChange> memory;
    bool step = false;    // one instruction, with interrupts held off
    bool leaves = false;  // begins with a step off a breakpoint
    bool loose = false;   // ends as soon as the instructions have been executed
    Place end;
  };
  static constexpr size_t kMaxLegs = size_t{1} << 20;
  std::vector<Leg> legs;
  std::string impossible;             // why reverse execution is not possible; empty: it is
  bool again = false;                 // the board restarts and replays the legs
  std::vector<uint32_t> breakpoints;  // at the time of the reverse step
  /// The replay also searches for the latest breakpoint.
  bool searches = false;
  struct Found {
    size_t leg;
    uint64_t instructions;
  };
  std::optional<Found> found;

  /// Truncates the history at the breakpoint found, or to the beginning.
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

  /// Removes the last instruction. False: there is none.
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
