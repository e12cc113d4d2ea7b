// SPDX-License-Identifier: Apache-2.0
// Which exceptions are pending, enabled and active, and which comes next: the priority logic of an Armv8-M
// interrupt controller without security states.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "platform/cpu.hpp"

namespace carina::platform {

/// Exception numbers; external interrupt n is kExternal + n.
enum Exception : uint32_t {
  kReset = 1,
  kNmi = 2,
  kHardFault = 3,
  kMemManage = 4,
  kBusFault = 5,
  kUsageFault = 6,
  kSvcall = 11,
  kDebugMonitor = 12,
  kPendSv = 14,
  kSysTick = 15,
  kExternal = 16,
};
constexpr uint32_t kInterruptLines = 480;
constexpr uint32_t kExceptions = kExternal + kInterruptLines;
/// "SysTick", "interrupt 56".
std::string exceptionName(uint32_t exception);

class Interrupts {
 public:
  /// Below every exception: thread mode without masks.
  static constexpr int kIdlePriority = 256;
  /// Bits of a priority that exist (three, as CMSIS headers of these cores say).
  static constexpr uint8_t kPriorityMask = 0xe0;

  Interrupts();

  void pend(uint32_t exception) { pending_.set(exception); }
  void unpend(uint32_t exception);
  bool pending(uint32_t exception) const { return pending_[exception]; }
  /// Level of an interrupt line; a high line pends when it rises and again when its handler has returned.
  void setLine(uint32_t interrupt, bool high);

  void enable(uint32_t exception, bool on) { enabled_.set(exception, on); }
  bool enabled(uint32_t exception) const { return enabled_[exception]; }
  void setPriority(uint32_t exception, uint8_t value) { priority_[exception] = value & kPriorityMask; }
  uint8_t priority(uint32_t exception) const { return priority_[exception]; }
  void setPriorityGroup(uint32_t group) { group_ = group & 7; }
  uint32_t priorityGroup() const { return group_; }

  /// Exceptions being handled, the outermost first.
  const std::vector<uint32_t>& active() const { return active_; }
  bool isActive(uint32_t exception) const;
  void enter(uint32_t exception);
  void leave(uint32_t exception);

  /// What now executes: the lower the more urgent. Masks are taken from the registers when `masked`.
  int executionPriority(const State& registers, bool masked = true) const;
  /// Priority at which an exception preempts.
  int groupPriority(uint32_t exception) const;
  /// The pending, enabled exception that goes first, if any.
  std::optional<uint32_t> first() const;
  /// The same, if it may be taken now.
  std::optional<uint32_t> takeable(const State& registers) const;
  /// Whether one is pending and enabled that only PRIMASK, FAULTMASK or BASEPRI hold back.
  bool maskedOnly(const State& registers) const;

 private:
  int groupOf(int priority) const;

  std::bitset<kExceptions> pending_, enabled_, line_;
  std::array<uint8_t, kExceptions> priority_{};
  std::vector<uint32_t> active_;
  uint32_t group_ = 0;
};

}  // namespace carina::platform
