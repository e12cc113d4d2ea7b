// SPDX-License-Identifier: Apache-2.0
#include "platform/interrupts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace carina::platform {

std::string exceptionName(uint32_t exception) {
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
  for (const uint32_t always : {kReset, kNmi, kHardFault, kSvcall, kPendSv, kSysTick}) enabled_.set(always);
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

int Interrupts::groupOf(int priority) const {
  return priority & ~((2 << group_) - 1);
}

int Interrupts::groupPriority(uint32_t exception) const {
  if (exception == kReset) return -4;
  if (exception == kNmi) return -2;
  if (exception == kHardFault) return -1;
  return groupOf(priority_[exception]);
}

int Interrupts::executionPriority(const State& registers, bool masked) const {
  int lowest = kIdlePriority;
  for (const uint32_t exception : active_) lowest = std::min(lowest, groupPriority(exception));
  if (!masked) return lowest;
  if (const int base = static_cast<int>(registers.basepri[registers.world] & kPriorityMask); base != 0)
    lowest = std::min(lowest, groupOf(base));
  if ((registers.primask[registers.world] & 1) != 0) lowest = std::min(lowest, 0);
  if ((registers.faultmask[registers.world] & 1) != 0) lowest = std::min(lowest, -1);
  return lowest;
}

std::optional<uint32_t> Interrupts::first() const {
  const auto ready = pending_ & enabled_;
  std::optional<uint32_t> best;
  if (ready.none()) return best;
  const auto rank = [&](uint32_t e) { return e <= kHardFault ? groupPriority(e) : int{priority_[e]}; };
  for (size_t e = ready._Find_first(); e < ready.size(); e = ready._Find_next(e)) {
    const auto exception = static_cast<uint32_t>(e);
    if (!best || rank(exception) < rank(*best)) best = exception;
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
