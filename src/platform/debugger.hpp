// SPDX-License-Identifier: Apache-2.0
// Debuggers of the virtual platform: what they can do while the core is stopped, and when they are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "platform/cpu.hpp"

namespace carina::platform {

/// The board as seen by a debugger.
class DebugTarget {
 public:
  /// Valid while the core is stopped.
  virtual State& registers() = 0;
  /// Memory, or device registers in whole words. False: not all of it is mapped.
  virtual bool read(uint32_t address, std::span<std::byte> bytes) = 0;
  virtual bool write(uint32_t address, std::span<const std::byte> bytes) = 0;
  /// Breakpoints on instructions in memory. False: there is no memory.
  virtual bool setBreakpoint(uint32_t address) = 0;
  virtual void clearBreakpoint(uint32_t address) = 0;
  /// Watchpoints on data: the core stops after an instruction that accesses them. False: too many bytes.
  virtual bool setWatchpoint(const WatchedRange& range) = 0;
  virtual void clearWatchpoint(const WatchedRange& range) = 0;
  /// After DebugEvent::Watchpoint: the watchpoint, with the address that was accessed.
  virtual WatchedRange accessed() const = 0;

 protected:
  ~DebugTarget() = default;
};

/// Why the core is stopped.
enum class DebugEvent : uint8_t {
  Attached,
  Interrupted,
  Stepped,
  Breakpoint,
  Watchpoint,
  Fault,
  UndefinedInstruction,
  Beginning,  // reverse execution has reached the start
  Ending,     // execution cannot continue: the run ends when the debugger resumes it
};

class Debugger {
 public:
  virtual ~Debugger() = default;
  enum class Next : uint8_t { Continue, Step, StepBack, ContinueBack, Detach, Kill };
  /// The core is stopped until this returns. An Error: the debugger has disconnected.
  virtual Result<Next> stopped(DebugEvent event, DebugTarget& target) = 0;
  /// Polled while the core runs: whether it must stop.
  virtual bool stopWanted() = 0;
  /// Shows a line to the user.
  virtual void say(const std::string& line) = 0;
  /// The run is over.
  virtual void ended(int exitCode) = 0;
};

}  // namespace carina::platform
