// SPDX-License-Identifier: Apache-2.0
// Connects the run loop and a debugger: breakpoints, single steps, and the debugger's view of the board.
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

  /// To be called before the core continues: gives the debugger control when it is due. False: the run must
  /// end or, with DebugHistory::again, restart.
  Result<bool> beforeStep();
  /// Whether the next instruction must be executed on its own.
  bool single() const { return mode_ != Mode::Running; }
  /// During a replay: number of instructions that may be executed now.
  std::optional<uint64_t> ahead() const;
  /// An exception has been entered.
  void noteEntry() { ++entries_; }
  /// Whether a stop was requested by the debugger, not by the firmware.
  bool claims(const Stop& stop);
  /// The firmware has faulted; the core is stopped at the handler.
  void noteFault(bool undefined) {
    pending_ = undefined ? DebugEvent::UndefinedInstruction : DebugEvent::Fault;
  }
  /// The run ends; unless the firmware ended it (`itself`), the debugger gets control once more.
  /// `explanation` is the reason.
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
  /// Gives the debugger control; returns what it requests next.
  Result<Debugger::Next> ask(DebugEvent event);
  /// Between two steps of a replay. True: the core continues; false: the replay has ended.
  bool repeat();
  void record();
  std::vector<DebugHistory::Leg>& legs() { return history_.legs; }
  void beginLeg();
  /// Looks for a breakpoint in the instructions that are executed next.
  void search();
  bool legEnds();

  Debugger& debugger_;
  DebugHistory& history_;
  const Bus& bus_;
  Peripherals& peripherals_;
  Core& core_;
  std::map<uint32_t, uint16_t> breakpoints_;         // address, and the halfword that BKPT replaces
  std::vector<WatchedRange> watchpoints_, applied_;  // requested, and those set in the core
  WatchedRange accessed_{};
  std::optional<DebugEvent> pending_ = DebugEvent::Attached;
  Mode mode_ = Mode::Stepping;
  bool inserted_ = false, detached_ = false, open_ = false;
  uint64_t entries_ = 0;
  DebugHistory::Leg changes_;  // what the debugger has changed since the latest stop
  // State of a replay: the current leg, whether one has begun, whether its last exception is awaited, and
  // whether the board must restart once more.
  size_t leg_ = 0;
  bool begun_ = false, late_ = false, restarts_ = false;
};

}  // namespace carina::platform
