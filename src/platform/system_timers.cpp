// SPDX-License-Identifier: Apache-2.0
#include "platform/system_timers.hpp"

#include <algorithm>

namespace carina::platform {
namespace {

constexpr uint32_t low(uint64_t value) {
  return static_cast<uint32_t>(value);
}
constexpr uint32_t high(uint64_t value) {
  return static_cast<uint32_t>(value >> 32);
}
void setLow(uint64_t& value, uint32_t part) {
  value = (value & ~uint64_t{0xffffffff}) | part;
}
void setHigh(uint64_t& value, uint32_t part) {
  value = (value & 0xffffffff) | uint64_t{part} << 32;
}

// The counter.
constexpr uint32_t kCounterControl = 0x0, kCounterStatus = 0x4, kCounterLow = 0x8, kCounterHigh = 0xc;
// A timer.
constexpr uint32_t kCount = 0x0, kFrequency = 0x10, kCompare = 0x20, kTimerValue = 0x28, kTimerControl = 0x2c,
                   kAutomaticCompare = 0x40, kReload = 0x48, kAutomaticControl = 0x4c, kConfiguration = 0x50;
// A watchdog; its refresh frame follows its control frame.
constexpr uint32_t kWatchdogControl = 0x0, kWatchdogOffset = 0x8, kWatchdogCompare = 0x10, kRefresh = 0x1000;

constexpr uint32_t bit(bool value, uint32_t at) {
  return static_cast<uint32_t>(value) << at;
}

}  // namespace

// --- the counter

uint64_t SystemCounter::timeOf(uint64_t target) const {
  if (!enabled_) return kNever;
  const uint64_t left = target - std::min(target, value());
  return left > kNever - clock_.now() ? kNever : clock_.now() + left;
}

uint32_t SystemCounter::read(uint32_t offset) {
  switch (offset) {
    case kCounterControl:
      return bit(enabled_, 0) | bit(haltOnDebug_, 1);
    case kCounterStatus:
      return 0;  // not halted
    case kCounterLow:
      return low(value());
    case kCounterHigh:
      return high(value());
    default:
      return 0;  // also the identity: no scaling
  }
}

void SystemCounter::write(uint32_t offset, uint32_t value) {
  value_ = this->value();
  since_ = clock_.now();
  if (offset == kCounterControl) {
    enabled_ = (value & 1) != 0;
    haltOnDebug_ = (value & 2) != 0;
  }
  if (offset == kCounterLow) setLow(value_, value);
  if (offset == kCounterHigh) setHigh(value_, value);
}

uint32_t SystemCounterView::read(uint32_t offset) {
  if (offset == 0) return low(counter_.value());
  return offset == 4 ? high(counter_.value()) : 0;
}

// --- a timer

void SystemTimer::update() {
  if (enabled_ && automatic_ && counter_.value() >= automaticCompare_) {
    expired_ = true;
    const uint64_t missed = (counter_.value() - automaticCompare_) / std::max(period_, 1u);
    automaticCompare_ += (missed + 1) * std::max(period_, 1u);
  }
  interrupts_.setLine(line_, enabled_ && !masked_ && reached());
}

void SystemTimer::advance(uint64_t) {
  update();
}

uint64_t SystemTimer::nextEvent() const {
  if (!enabled_) return kNever;
  if (automatic_) return expired_ ? kNever : counter_.timeOf(automaticCompare_);
  return counter_.value() >= compare_ ? kNever : counter_.timeOf(compare_);
}

uint32_t SystemTimer::read(uint32_t offset) {
  update();
  switch (offset) {
    case kCount:
      return low(counter_.value());
    case kCount + 4:
      return high(counter_.value());
    case kFrequency:
      return frequency_;
    case kCompare:
      return low(compare_);
    case kCompare + 4:
      return high(compare_);
    case kTimerValue:
      return low(compare_ - counter_.value());
    case kTimerControl:
      return bit(enabled_, 0) | bit(masked_, 1) | bit(enabled_ && reached(), 2);
    case kAutomaticCompare:
      return low(automaticCompare_);
    case kAutomaticCompare + 4:
      return high(automaticCompare_);
    case kReload:
      return period_;
    case kAutomaticControl:
      return bit(automatic_, 0) | bit(expired_, 1);
    case kConfiguration:
      return 1;  // has the automatic mode
    default:
      return 0;
  }
}

void SystemTimer::write(uint32_t offset, uint32_t value) {
  update();
  switch (offset) {
    case kFrequency:
      frequency_ = value;
      break;
    case kCompare:
      setLow(compare_, value);
      break;
    case kCompare + 4:
      setHigh(compare_, value);
      break;
    case kTimerValue:
      compare_ = counter_.value() + static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
      break;
    case kTimerControl:
      enabled_ = (value & 1) != 0;
      masked_ = (value & 2) != 0;
      break;
    case kReload:
      period_ = value;
      automaticCompare_ = counter_.value() + value;
      break;
    case kAutomaticControl:
      automatic_ = (value & 1) != 0;
      if ((value & 2) == 0) expired_ = false;
      break;
    default:
      break;
  }
  update();
}

// --- a watchdog

void Watchdog::refresh() {
  if (first_) interrupt_(false);
  first_ = second_ = false;
  compare_ = counter_.value() + offset_;
}

uint64_t Watchdog::nextEvent() const {
  return enabled_ && !second_ ? counter_.timeOf(compare_) : kNever;
}

void Watchdog::advance(uint64_t) {
  if (!enabled_ || second_ || counter_.value() < compare_) return;
  compare_ = counter_.value() + offset_;
  if (!first_) {
    first_ = true;
    interrupt_(true);
  } else {
    second_ = true;
    reset_();
  }
}

uint32_t Watchdog::read(uint32_t offset) {
  switch (offset) {
    case kWatchdogControl:
      return bit(enabled_, 0) | bit(first_, 1) | bit(second_, 2);
    case kWatchdogOffset:
      return low(offset_);
    case kWatchdogOffset + 4:
      return high(offset_);
    case kWatchdogCompare:
      return low(compare_);
    case kWatchdogCompare + 4:
      return high(compare_);
    default:
      return 0;
  }
}

void Watchdog::write(uint32_t offset, uint32_t value) {
  switch (offset) {
    case kWatchdogControl:
      enabled_ = (value & 1) != 0;
      break;
    case kWatchdogOffset:
      setLow(offset_, value);
      break;
    case kWatchdogOffset + 4:
      setHigh(offset_, value & 0xffff);
      break;
    case kWatchdogCompare:
      setLow(compare_, value);
      return;
    case kWatchdogCompare + 4:
      setHigh(compare_, value);
      return;
    case kRefresh:
      break;
    default:
      return;
  }
  refresh();
}

}  // namespace carina::platform
