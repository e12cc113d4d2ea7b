// SPDX-License-Identifier: Apache-2.0
// Which exceptions are pending, enabled and active, and which is next: the priority logic of an Armv8-M
// interrupt controller with both security states.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "platform/cpu.hpp"

namespace carina::platform {

/// Exception numbers; external interrupt n is kExternal + n. The Non-secure instance of a banked exception is
/// its number + kNonSecureBank.
enum Exception : uint32_t {
  kReset = 1,
  kNmi = 2,
  kHardFault = 3,
  kMemManage = 4,
  kBusFault = 5,
  kUsageFault = 6,
  kSecureFault = 7,
  kSvcall = 11,
  kDebugMonitor = 12,
  kPendSv = 14,
  kSysTick = 15,
  kExternal = 16,
};
constexpr uint32_t kInterruptLines = 480;
constexpr uint32_t kExceptions = kExternal + kInterruptLines;
constexpr uint32_t kNonSecureBank = 512;
/// Whether an exception exists in both worlds.
constexpr bool isBanked(uint32_t number) {
  return number == kHardFault || number == kMemManage || number == kUsageFault || number == kSvcall ||
         number == kPendSv || number == kSysTick;
}
/// The exception `number` of a world.
constexpr uint32_t ofWorld(uint32_t number, World world) {
  return isBanked(number) && world == kNonSecure ? number + kNonSecureBank : number;
}
constexpr uint32_t numberOf(uint32_t exception) {
  return exception & (kNonSecureBank - 1);
}
/// "SysTick", "interrupt 56".
std::string exceptionName(uint32_t exception);

class Interrupts {
 public:
  /// Below every exception: Thread mode without masks.
  static constexpr int kIdlePriority = 256;
  /// The implemented bits of a priority (three, as in the CMSIS headers of these cores).
  static constexpr uint8_t kPriorityMask = 0xe0;

  Interrupts();

  void pend(uint32_t exception) { pending_.set(exception); }
  void unpend(uint32_t exception);
  bool pending(uint32_t exception) const { return pending_[exception]; }
  /// Sets the level of an interrupt line; a high line becomes pending when it rises and again when its
  /// handler has returned.
  void setLine(uint32_t interrupt, bool high);

  void enable(uint32_t exception, bool on) { enabled_.set(exception, on); }
  bool enabled(uint32_t exception) const { return enabled_[exception]; }
  void setPriority(uint32_t exception, uint8_t value) { priority_[exception] = value & kPriorityMask; }
  uint8_t priority(uint32_t exception) const { return priority_[exception]; }
  void setPriorityGroup(uint32_t group, World world = kSecure) { group_[world] = group & 7; }
  uint32_t priorityGroup(World world = kSecure) const { return group_[world]; }
  /// AIRCR.PRIS: Non-secure exceptions have the lower half of the priorities.
  void setSecureFirst(bool on) { secureFirst_ = on; }
  bool secureFirst() const { return secureFirst_; }
  /// AIRCR.BFHFNMINS: NMI and BusFault are Non-secure, and there is a Non-secure HardFault.
  void setFaultsNonSecure(bool on);
  bool faultsNonSecure() const { return faultsNonSecure_; }
  /// NVIC_ITNS: the world that an interrupt belongs to.
  void setTarget(uint32_t interrupt, World world) {
    nonSecure_.set(kExternal + interrupt, world == kNonSecure);
  }
  /// The world that handles an exception.
  World targetOf(uint32_t exception) const;

  /// Exceptions being handled, the outermost first.
  const std::vector<uint32_t>& active() const { return active_; }
  bool isActive(uint32_t exception) const;
  void enter(uint32_t exception);
  void leave(uint32_t exception);

  /// The current execution priority: the lower, the more urgent. If `masked`, includes the masks in the
  /// registers.
  int executionPriority(const State& registers, bool masked = true) const;
  /// Priority at which an exception preempts.
  int groupPriority(uint32_t exception) const;
  /// The pending, enabled exception with the highest priority, if any.
  std::optional<uint32_t> first() const;
  /// The same, if it can be taken now.
  std::optional<uint32_t> takeable(const State& registers) const;
  /// Whether a pending, enabled exception is held back only by PRIMASK, FAULTMASK or BASEPRI.
  bool maskedOnly(const State& registers) const;

 private:
  static constexpr uint32_t kIds = 2 * kNonSecureBank;
  int groupOf(int priority, World world) const;
  /// A priority of a world on the scale of both.
  int scaled(int priority, World world) const;

  std::bitset<kIds> pending_, enabled_, line_, nonSecure_;
  std::array<uint8_t, kIds> priority_{};
  std::vector<uint32_t> active_;
  uint32_t group_[2] = {};
  bool secureFirst_ = false, faultsNonSecure_ = false;
};

}  // namespace carina::platform
