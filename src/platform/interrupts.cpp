// SPDX-License-Identifier: Apache-2.0
#include "platform/interrupts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace carina::platform {

std::string exceptionName(uint32_t exception) {
  if (exception >= kNonSecureBank) return "Non-secure " + exceptionName(numberOf(exception));
  switch (exception) {
    case kNmi:
      return "NMI";
    case kHardFault:
      return "HardFault";
    case kMemManage:
      return "MemManage";
    case kBusFault:
      return "BusFault";
    case kUsageFault:
      return "UsageFault";
    case kSecureFault:
      return "SecureFault";
    case kSvcall:
      return "SVCall";
    case kDebugMonitor:
      return "DebugMonitor";
    case kPendSv:
      return "PendSV";
    case kSysTick:
      return "SysTick";
    default:
      return exception < kExternal ? fmt::format("exception {}", exception)
                                   : fmt::format("interrupt {}", exception - kExternal);
  }
}

Interrupts::Interrupts() {
  for (const uint32_t always : {kReset, kNmi, kHardFault, kSvcall, kDebugMonitor, kPendSv, kSysTick}) {
    enabled_.set(always);
    if (isBanked(always) && always != kHardFault) enabled_.set(always + kNonSecureBank);
  }
}

void Interrupts::setFaultsNonSecure(bool on) {
  faultsNonSecure_ = on;
  enabled_.set(kHardFault + kNonSecureBank, on);
}

World Interrupts::targetOf(uint32_t exception) const {
  if (exception >= kNonSecureBank) return kNonSecure;
  if (exception == kNmi || exception == kBusFault) return faultsNonSecure_ ? kNonSecure : kSecure;
  return nonSecure_[exception] ? kNonSecure : kSecure;
}

void Interrupts::unpend(uint32_t exception) {
  pending_.set(exception, line_[exception]);
}

void Interrupts::setLine(uint32_t interrupt, bool high) {
  const uint32_t exception = kExternal + interrupt;
  if (high && !line_[exception]) pending_.set(exception);
  line_.set(exception, high);
}

bool Interrupts::isActive(uint32_t exception) const {
  return std::find(active_.begin(), active_.end(), exception) != active_.end();
}

void Interrupts::enter(uint32_t exception) {
  pending_.reset(exception);
  active_.push_back(exception);
}

void Interrupts::leave(uint32_t exception) {
  const auto at = std::find(active_.rbegin(), active_.rend(), exception);
  if (at != active_.rend()) active_.erase(std::next(at).base());
  if (line_[exception]) pending_.set(exception);
}

int Interrupts::groupOf(int priority, World world) const {
  return priority & ~((2 << group_[world]) - 1);
}

int Interrupts::scaled(int priority, World world) const {
  return world == kNonSecure && secureFirst_ ? priority >> 1 | 0x80 : priority;
}

int Interrupts::groupPriority(uint32_t exception) const {
  if (exception == kReset) return -4;
  if (exception == kNmi) return -2;
  if (exception == kHardFault) return faultsNonSecure_ ? -3 : -1;
  if (exception == kHardFault + kNonSecureBank) return -1;
  const World world = targetOf(exception);
  return scaled(groupOf(priority_[exception], world), world);
}

int Interrupts::executionPriority(const State& registers, bool masked) const {
  int lowest = kIdlePriority;
  for (const uint32_t exception : active_) lowest = std::min(lowest, groupPriority(exception));
  if (!masked) return lowest;
  for (const World world : {kNonSecure, kSecure}) {
    const int none = scaled(0, world);
    if (const int base = static_cast<int>(registers.basepri[world] & kPriorityMask); base != 0)
      lowest = std::min(lowest, scaled(groupOf(base, world), world));
    if ((registers.primask[world] & 1) != 0) lowest = std::min(lowest, none);
    if ((registers.faultmask[world] & 1) == 0) continue;
    const int fault = world == kSecure ? (faultsNonSecure_ ? -3 : -1) : faultsNonSecure_ ? -1 : none;
    lowest = std::min(lowest, fault);
  }
  return lowest;
}

std::optional<uint32_t> Interrupts::first() const {
  const auto ready = pending_ & enabled_;
  std::optional<uint32_t> best;
  if (ready.none()) return best;
  const auto rank = [&](uint32_t e) {
    return numberOf(e) <= kHardFault ? groupPriority(e) : scaled(priority_[e], targetOf(e));
  };
  const auto before = [&](uint32_t a, uint32_t b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : numberOf(a) < numberOf(b);
  };
  for (size_t e = ready._Find_first(); e < ready.size(); e = ready._Find_next(e)) {
    const auto exception = static_cast<uint32_t>(e);
    if (!best || before(exception, *best)) best = exception;
  }
  return best;
}

std::optional<uint32_t> Interrupts::takeable(const State& registers) const {
  const auto next = first();
  if (!next || groupPriority(*next) >= executionPriority(registers)) return std::nullopt;
  return next;
}

bool Interrupts::maskedOnly(const State& registers) const {
  const auto next = first();
  return next && groupPriority(*next) >= executionPriority(registers) &&
         groupPriority(*next) < executionPriority(registers, false);
}

}  // namespace carina::platform
