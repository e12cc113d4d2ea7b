// SPDX-License-Identifier: Apache-2.0
// A debugger at the virtual platform: what it may do while the core stands still, and when it is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "platform/cpu.hpp"

namespace carina::platform {

/// The board as a debugger sees it.
class DebugTarget {
 public:
  /// Valid while the core stands still.
  virtual State& registers() = 0;
  /// Memory, or device registers in whole words. False: not all of it is there.
  virtual bool read(uint32_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(uint32_t address, std::span<const std::byte> bytes) = 0;
  /// Breakpoints in memory, at instructions. False: there is no memory.
  virtual bool setBreakpoint(uint32_t address) = 0;
  virtual void clearBreakpoint(uint32_t address) = 0;
  /// Watchpoints, at data: the core stops after an instruction that accesses them. False: too many bytes.
  virtual bool setWatchpoint(const WatchedRange& range) = 0;
  virtual void clearWatchpoint(const WatchedRange& range) = 0;
  /// After DebugEvent::Watchpoint: which, with the address that was accessed.
  virtual WatchedRange accessed() const = 0;

 protected:
  ~DebugTarget() = default;
};

/// Why the core stands still.
enum class DebugEvent : uint8_t {
  Attached,
  Interrupted,
  Stepped,
  Breakpoint,
  Watchpoint,
  Fault,
  UndefinedInstruction,
  Beginning,  // there is nothing before this to go back to
  Ending,     // it cannot go on: the run ends when the debugger lets go
};

class Debugger {
 public:
  virtual ~Debugger() = default;
  enum class Next : uint8_t { Continue, Step, StepBack, ContinueBack, Detach, Kill };
  /// The core stands still until this returns. An Error: the debugger is gone.
  virtual Result<Next> stopped(DebugEvent event, DebugTarget& target) = 0;
  /// Asked now and then while the core runs: whether it shall stop.
  virtual bool stopWanted() = 0;
  /// A line for the person behind it.
  virtual void say(const std::string& line) = 0;
  /// The run is over.
  virtual void ended(int exitCode) = 0;
};

}  // namespace carina::platform
