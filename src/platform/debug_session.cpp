// SPDX-License-Identifier: Apache-2.0
#include "platform/debug_session.hpp"

#include <algorithm>
#include <cstring>

namespace carina::platform {
namespace {

constexpr uint16_t kBreakpoint = 0xbe00;  // BKPT 0
constexpr uint8_t kSemihosting = 0xab;

/// Most instructions to run at a time while searching back for a breakpoint: Core::runAtMost() then executes
/// single basic blocks.
constexpr uint64_t kSearched = 64;

bool goesBack(Debugger::Next next) {
  return next == Debugger::Next::StepBack || next == Debugger::Next::ContinueBack;
}

bool isDevice(uint32_t address) {
  return address >= kPrivate ? address - kPrivate < kPrivateSize
                             : address >= kPeripherals && address - kPeripherals < kPeripheralsSize;
}

}  // namespace

void DebugSession::insert() {
  if (inserted_) return;
  inserted_ = true;
  for (auto& [address, original] : breakpoints_) {
    std::byte* code = bus_.find(address, sizeof original);
    std::memcpy(&original, code, sizeof original);
    std::memcpy(code, &kBreakpoint, sizeof kBreakpoint);
  }
  core_.codeChanged();
}

void DebugSession::remove() {
  if (!inserted_) return;
  inserted_ = false;
  for (const auto& [address, original] : breakpoints_) {
    std::byte* code = bus_.find(address, sizeof original);
    uint16_t now = 0;
    std::memcpy(&now, code, sizeof now);
    if (now != kBreakpoint) continue;  // the firmware has written other code there
    std::memcpy(code, &original, sizeof original);
  }
  core_.codeChanged();
}

std::optional<uint64_t> DebugSession::ahead() const {
  if (!history_.again || mode_ != Mode::Running || leg_ >= history_.legs.size()) return std::nullopt;
  const uint64_t end = history_.legs[leg_].end.instructions, now = core_.instructions();
  if (now >= end) return 0;
  return history_.searches ? std::min(end - now, kSearched) : end - now;
}

void DebugSession::search() {
  for (const uint32_t address : history_.breakpoints) {
    const auto distance = core_.distanceTo(address);
    if (!distance || (mode_ != Mode::Running && *distance != 0)) continue;
    const uint64_t at = core_.instructions() + *distance;
    if (at < history_.legs.back().end.instructions && (!history_.found || at >= history_.found->instructions))
      history_.found = DebugHistory::Found{leg_, at};
  }
}

void DebugSession::beginLeg() {
  const DebugHistory::Leg& leg = history_.legs[leg_];
  for (const DebugHistory::MemoryChange& change : leg.memory) (void)write(change.address, change.bytes);
  changes_ = {};
  if (leg.registers) core_.state = *leg.registers;
  mode_ = leg.step ? Mode::Stepping : leg.leaves ? Mode::LeavingBreakpoint : Mode::Running;
  late_ = false;
}

bool DebugSession::legEnds() {
  const DebugHistory::Leg& leg = history_.legs[leg_];
  if (mode_ == Mode::Stepping) return true;
  if (mode_ == Mode::LeavingBreakpoint) mode_ = Mode::Running;
  if (core_.instructions() < leg.end.instructions) return false;
  if (leg.loose || entries_ >= leg.end.entries || late_) return true;
  late_ = true;  // an exception is still to be entered
  return false;
}

bool DebugSession::repeat() {
  pending_.reset();
  if (begun_ && !legEnds()) {
    if (history_.searches) search();
    return true;
  }
  if (begun_) ++leg_;
  begun_ = true;
  for (; leg_ < history_.legs.size(); ++leg_) {
    beginLeg();
    if (history_.searches) search();
    if (mode_ != Mode::Running || !legEnds()) return true;  // other legs have nothing to execute
  }
  if (history_.searches) {
    history_.endAtFound();
    restarts_ = true;
    return false;
  }
  history_.again = false;
  mode_ = Mode::Stepping;
  for (const uint32_t address : history_.breakpoints) setBreakpoint(address);
  pending_ = history_.legs.empty() ? DebugEvent::Beginning : DebugEvent::Stepped;
  return false;
}

Result<Debugger::Next> DebugSession::ask(DebugEvent event) {
  for (;;) {
    const State before = core_.state;
    CARINA_TRY(const Debugger::Next next, debugger_.stopped(event, *this));
    // Different padding only costs a copy.
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
    if (std::memcmp(&before, &core_.state, sizeof before) != 0)
      changes_.registers = std::make_unique<State>(core_.state);
    if (!goesBack(next)) return next;
    if (!history_.impossible.empty()) {
      debugger_.say("cannot go back: " + history_.impossible);
    } else if (next == Debugger::Next::ContinueBack ? !history_.legs.empty() : history_.stepBack()) {
      history_.again = true;
      history_.searches = next == Debugger::Next::ContinueBack;
      history_.breakpoints.clear();
      for (const auto& [address, original] : breakpoints_) history_.breakpoints.push_back(address);
      return next;
    }
    event = DebugEvent::Beginning;
  }
}

Result<bool> DebugSession::beforeStep() {
  if (detached_) return true;
  if (history_.again && repeat()) return true;
  if (restarts_) return false;
  if (mode_ == Mode::LeavingBreakpoint && !pending_) {
    mode_ = Mode::Running;
    insert();
  }
  if (!pending_ && mode_ == Mode::Stepping) pending_ = DebugEvent::Stepped;
  if (!pending_ && debugger_.stopWanted()) pending_ = DebugEvent::Interrupted;
  if (!pending_) return true;
  remove();
  const DebugEvent event = *pending_;
  pending_.reset();
  if (!legs().empty() && open_) legs().back().end = {core_.instructions(), entries_};
  open_ = false;
  CARINA_TRY(const Debugger::Next next, ask(event));
  return goesBack(next) ? Result<bool>(false) : resume(next);
}

void DebugSession::applyWatchpoints() {
  if (watchpoints_ == applied_) return;
  applied_ = watchpoints_;
  core_.memory.watch(applied_);
}

void DebugSession::record() {
  changes_.step = mode_ == Mode::Stepping;
  changes_.leaves = mode_ == Mode::LeavingBreakpoint;
  if (history_.impossible.empty() && legs().size() >= DebugHistory::kMaxLegs)
    history_.impossible = "there were too many stops";
  if (history_.impossible.empty()) legs().push_back(std::move(changes_));
  changes_ = {};
  open_ = history_.impossible.empty();
}

Result<bool> DebugSession::resume(Debugger::Next next) {
  mode_ = Mode::Running;
  if (next == Debugger::Next::Detach) watchpoints_.clear();
  // GDB removes watchpoints for the step past one: hits during it are not reported.
  if (next != Debugger::Next::Kill && (next != Debugger::Next::Step || !watchpoints_.empty()))
    applyWatchpoints();
  switch (next) {
    case Debugger::Next::Kill:
      return false;
    case Debugger::Next::Detach:
      detached_ = true;
      return true;
    case Debugger::Next::Step:
      mode_ = Mode::Stepping;
      record();
      return true;
    default:
      break;
  }
  if (breakpoints_.count(core_.state.pc) != 0) mode_ = Mode::LeavingBreakpoint;
  record();
  if (mode_ == Mode::Running) insert();
  return true;
}

Status DebugSession::end(bool itself, int exitCode, const std::string& explanation) {
  if (detached_) return {};
  remove();
  if (!itself) {
    debugger_.say(explanation);
    if (open_) legs().back().end = {core_.instructions(), entries_};
    CARINA_TRY(const Debugger::Next next, ask(DebugEvent::Ending));
    if (goesBack(next)) return {};
    if (next == Debugger::Next::Kill || next == Debugger::Next::Detach) return {};
  }
  debugger_.ended(exitCode);
  return {};
}

bool DebugSession::claims(const Stop& stop) {
  if (history_.again) return false;
  if (!detached_ && stop.reason == StopReason::Watchpoint) {
    const bool write = stop.value == cpu_m::kWatchWrites;
    for (const WatchedRange& range : watchpoints_) {
      if ((write ? range.writes : range.reads) && stop.address >= range.address &&
          stop.address - range.address < range.size) {
        accessed_ = {stop.address, 1, range.reads, range.writes};
        pending_ = DebugEvent::Watchpoint;
        return true;
      }
    }
    return false;
  }
  if (detached_ || stop.reason != StopReason::Breakpoint) return false;
  // Also a BKPT of the firmware itself, but not its semihosting calls.
  const bool ours = inserted_ && breakpoints_.count(core_.state.pc) != 0;
  if (!ours && stop.value == kSemihosting) return false;
  pending_ = DebugEvent::Breakpoint;
  return true;
}

bool DebugSession::read(uint32_t address, std::span<std::byte> bytes) {
  if (const std::byte* memory = bus_.find(address, bytes.size()); memory != nullptr) {
    std::memcpy(bytes.data(), memory, bytes.size());
    return true;
  }
  if (address % 4 != 0 || bytes.size() % 4 != 0) return false;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const uint32_t at = address + static_cast<uint32_t>(i);
    if (!isDevice(at)) return false;
    if (history_.impossible.empty()) history_.impossible = "device registers have been read";
    const uint32_t value = peripherals_.readFreely(at, 4);
    std::memcpy(&bytes[i], &value, sizeof value);
  }
  return true;
}

bool DebugSession::write(uint32_t address, std::span<const std::byte> bytes) {
  changes_.memory.push_back({address, {bytes.begin(), bytes.end()}});
  if (std::byte* memory = bus_.find(address, bytes.size()); memory != nullptr) {
    std::memcpy(memory, bytes.data(), bytes.size());
    core_.codeChanged();
    return true;
  }
  if (address % 4 != 0 || bytes.size() % 4 != 0) return false;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const uint32_t at = address + static_cast<uint32_t>(i);
    if (!isDevice(at)) return false;
    uint32_t value = 0;
    std::memcpy(&value, &bytes[i], sizeof value);
    peripherals_.writeFreely(at, 4, value);
  }
  return true;
}

bool DebugSession::setWatchpoint(const WatchedRange& range) {
  constexpr uint32_t kMostBytes = 1 << 16;
  constexpr size_t kMost = 64;
  if (range.size == 0 || range.size > kMostBytes || range.address > UINT32_MAX - (range.size - 1))
    return false;
  if (std::find(watchpoints_.begin(), watchpoints_.end(), range) != watchpoints_.end()) return true;
  if (watchpoints_.size() >= kMost) return false;
  if (history_.impossible.empty()) history_.impossible = "watchpoints have been set";
  watchpoints_.push_back(range);
  return true;
}

void DebugSession::clearWatchpoint(const WatchedRange& range) {
  watchpoints_.erase(std::remove(watchpoints_.begin(), watchpoints_.end(), range), watchpoints_.end());
}

bool DebugSession::setBreakpoint(uint32_t address) {
  if (address % 2 != 0 || bus_.find(address, sizeof kBreakpoint) == nullptr) return false;
  breakpoints_.emplace(address, uint16_t{0});
  return true;
}

}  // namespace carina::platform
