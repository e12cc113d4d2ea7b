// SPDX-License-Identifier: Apache-2.0
// Between the run loop and a debugger: breakpoints, single steps, and the debugger's view of the board.
// Breakpoints are BKPT instructions that are in memory only while the core runs.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "platform/bus.hpp"
#include "platform/debug_history.hpp"
#include "platform/debugger.hpp"
#include "platform/peripherals.hpp"

namespace carina::platform {

class DebugSession final : public DebugTarget {
 public:
  /// All but `debugger` must outlive the session.
  DebugSession(Debugger& debugger, DebugHistory& history, const Bus& bus, Peripherals& peripherals,
               Core& core)
      : debugger_(debugger), history_(history), bus_(bus), peripherals_(peripherals), core_(core) {}

  /// Before the core goes on: gives the debugger its turn when it is due. False: the run shall end, or with
  /// DebugHistory::again begin anew.
  Result<bool> beforeStep();
  /// Whether the next instruction goes alone.
  bool single() const { return mode_ != Mode::Running; }
  /// Going through a history: instructions that may be executed now.
  std::optional<uint64_t> ahead() const;
  /// An exception has been entered.
  void noteEntry() { ++entries_; }
  /// A stop that only the debugger asked for, not the firmware.
  bool claims(const Stop& stop);
  /// The firmware has met a fault; the core stands at its handler.
  void noteFault(bool undefined) {
    pending_ = undefined ? DebugEvent::UndefinedInstruction : DebugEvent::Fault;
  }
  /// The run ends; unless the firmware ended it itself, the debugger has a last look. `explanation` says why.
  Status end(bool itself, int exitCode, const std::string& explanation);

  State& registers() override { return core_.state; }
  bool read(uint32_t address, std::span<std::byte> bytes) override;
  bool write(uint32_t address, std::span<const std::byte> bytes) override;
  bool setBreakpoint(uint32_t address) override;
  void clearBreakpoint(uint32_t address) override { breakpoints_.erase(address); }
  bool setWatchpoint(const WatchedRange& range) override;
  void clearWatchpoint(const WatchedRange& range) override;
  WatchedRange accessed() const override { return accessed_; }

 private:
  enum class Mode : uint8_t { Running, Stepping, LeavingBreakpoint };
  void insert();
  void remove();
  Result<bool> resume(Debugger::Next next);
  void applyWatchpoints();
  /// The debugger's turn; what it wants next.
  Result<Debugger::Next> ask(DebugEvent event);
  /// Between two steps of a history. True: the core goes on; false: this was its end.
  bool repeat();
  void record();
  std::vector<DebugHistory::Leg>& legs() { return history_.legs; }
  void beginLeg();
  /// Whether a breakpoint is among what is executed next.
  void search();
  bool legEnds();

  Debugger& debugger_;
  DebugHistory& history_;
  const Bus& bus_;
  Peripherals& peripherals_;
  Core& core_;
  std::map<uint32_t, uint16_t> breakpoints_;  // address, and the halfword there while BKPT takes its place
  std::vector<WatchedRange> watchpoints_, applied_;  // wanted, and what the core looks for
  WatchedRange accessed_{};
  std::optional<DebugEvent> pending_ = DebugEvent::Attached;
  Mode mode_ = Mode::Stepping;
  bool inserted_ = false, detached_ = false, open_ = false;
  uint64_t entries_ = 0;
  DebugHistory::Leg changes_;  // what the debugger has changed since the latest stop
  // While a history is gone through: where, and that its end has had a chance to be reached.
  size_t leg_ = 0;
  bool begun_ = false, late_ = false, restarts_ = false;
};

}  // namespace carina::platform
