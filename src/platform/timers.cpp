// SPDX-License-Identifier: Apache-2.0
#include "platform/timers.hpp"

#include "platform/cpu.hpp"

namespace carina::platform {

uint64_t Clock::now() const {
  return cpu_->cycles() + skipped_;
}

uint64_t Clock::instructions() const {
  return cpu_->instructions();
}

// --- SysTick

namespace {
constexpr uint32_t kSysTickEnable = 1u << 0, kSysTickCoreClock = 1u << 2, kSysTickCountFlag = 1u << 16;
constexpr uint32_t kMax24 = 0x00ffffff;
}  // namespace

uint32_t SysTick::value(uint64_t now) const {
  if (zeroAt_ == kNever) return held_;
  const uint64_t left = zeroAt_ - now;
  return left > reload_ ? 0 : static_cast<uint32_t>(left);
}

void SysTick::restart(uint64_t now, uint32_t value) {
  held_ = value;
  zeroAt_ = kNever;
  if ((control_ & kSysTickEnable) == 0) return;
  if (value != 0) {
    zeroAt_ = now + value;
  } else if (reload_ != 0) {
    zeroAt_ = now + 1 + reload_;  // a cycle to reload
  }
}

void SysTick::advance(uint64_t now) {
  if (zeroAt_ > now) return;
  counted_ = true;
  if ((control_ & kInterrupts) != 0) interrupts_.pend(exception_);
  if (reload_ == 0) {
    held_ = 0;
    zeroAt_ = kNever;
    return;
  }
  const uint64_t period = uint64_t{reload_} + 1;
  zeroAt_ += ((now - zeroAt_) / period + 1) * period;
}

uint32_t SysTick::read(uint32_t offset) {
  const uint64_t now = clock_.now();
  advance(now);
  switch (offset) {
    case 0x0: {
      const uint32_t flag = counted_ ? kSysTickCountFlag : 0;
      counted_ = false;
      return control_ | flag;
    }
    case 0x4:
      return reload_;
    case 0x8:
      return value(now);
    case 0xc:
      return 0xc0000000;  // no reference clock, no exact 10 ms
    default:
      return 0;
  }
}

void SysTick::write(uint32_t offset, uint32_t value) {
  const uint64_t now = clock_.now();
  advance(now);
  const uint32_t current = this->value(now);
  switch (offset) {
    case 0x0:
      control_ = (value & (kSysTickEnable | kInterrupts)) | kSysTickCoreClock;
      restart(now, current);
      break;
    case 0x4:
      reload_ = value & kMax24;
      if (current == 0) restart(now, 0);
      break;
    case 0x8:
      counted_ = false;
      restart(now, 0);
      break;
    default:
      break;
  }
}

// --- cycle counters

namespace {
constexpr uint32_t kTraceEnable = 1u << 24;
constexpr uint32_t kCycleBit = 1u << 31;
constexpr uint32_t kNoProfile = 1u << 24, kNoTrace = 3u << 26;  // of DWT_CTRL; no comparators either
constexpr uint32_t kSoftwareIncrement = 0x00, kInstructionsRetired = 0x08, kCpuCycles = 0x11, kChain = 0x1e;
}  // namespace

uint64_t CycleCounters::source(uint32_t i) const {
  switch (types_[i]) {
    case kInstructionsRetired:
      return clock_.instructions();
    case kCpuCycles:
      return clock_.now();
    case kChain:
      return i % 2 == 1 ? overflows(i - 1) : 0;
    default:
      return 0;
  }
}

uint64_t CycleCounters::overflows(uint32_t i) const {
  return i == kEvents ? pmuCycles_.total(clock_.now()) >> 32 : events_[i].total(source(i)) >> 16;
}

uint32_t CycleCounters::overflowBits() const {
  uint32_t bits = 0;
  for (uint32_t i = 0; i <= kEvents; ++i) {
    if (overflows(i) != seenOverflows_[i]) bits |= i == kEvents ? kCycleBit : 1u << i;
  }
  return bits;
}

void CycleCounters::clearOverflows(uint32_t bits) {
  for (uint32_t i = 0; i <= kEvents; ++i) {
    if ((bits & (i == kEvents ? kCycleBit : 1u << i)) != 0) seenOverflows_[i] = overflows(i);
  }
}

void CycleCounters::setCounter(uint32_t i, uint64_t count) {
  const bool overflowed = overflows(i) != seenOverflows_[i];
  // A counter of its overflows keeps its value.
  const bool chained = i + 1 < kEvents && types_[i + 1] == kChain;
  const uint64_t chain = chained ? events_[i + 1].total(source(i + 1)) : 0;
  i == kEvents ? pmuCycles_.set(clock_.now(), count) : events_[i].set(source(i), count);
  seenOverflows_[i] = overflows(i) - (overflowed ? 1 : 0);
  if (chained) events_[i + 1].set(source(i + 1), chain);
}

void CycleCounters::update() {
  const bool traced = (demcr_ & kTraceEnable) != 0;
  const bool pmu = traced && (pmuControl_ & 1) != 0;
  dwtCycles_.run(clock_.now(), traced && (dwtControl_ & 1) != 0);
  pmuCycles_.run(clock_.now(), pmu && (pmuEnabled_ & kCycleBit) != 0);
  for (uint32_t i = 0; i < kEvents; ++i) events_[i].run(source(i), pmu && (pmuEnabled_ >> i & 1) != 0);
}

void CycleCounters::writeDemcr(uint32_t value) {
  demcr_ = value;
  update();
}

uint32_t CycleCounters::readDwt(uint32_t offset) const {
  switch (offset) {
    case 0x0:
      return dwtControl_ | kNoTrace | kNoProfile;
    case 0x4:
      return dwtCycles_.value(clock_.now());
    default:
      return 0;
  }
}

void CycleCounters::writeDwt(uint32_t offset, uint32_t value) {
  if (offset == 0x0) dwtControl_ = value & 1;
  if (offset == 0x4) dwtCycles_.set(clock_.now(), value);
  update();
}

uint32_t CycleCounters::readPmu(uint32_t offset) const {
  if (offset < 4 * kEvents) return events_[offset / 4].value(source(offset / 4)) & 0xffff;
  if (offset >= 0x400 && offset < 0x400 + 4 * kEvents) return types_[(offset - 0x400) / 4];
  switch (offset) {
    case 0x07c:
      return pmuCycles_.value(clock_.now());
    case 0xc00:
    case 0xc20:
      return pmuEnabled_;
    case 0xc40:
    case 0xc60:
      return pmuInterrupts_;
    case 0xc80:
    case 0xcc0:
      return overflowBits();
    case 0xe00:
      return kEvents | 0x1fu << 8 | 1u << 14;  // 32-bit counters, with a cycle counter
    case 0xe04:
      return pmuControl_;
    default:
      return 0;
  }
}

void CycleCounters::writePmu(uint32_t offset, uint32_t value) {
  const uint32_t mask = kCycleBit | ((1u << kEvents) - 1);
  if (offset < 4 * kEvents) setCounter(offset / 4, value & 0xffff);
  if (offset >= 0x400 && offset < 0x400 + 4 * kEvents) {
    const uint32_t i = (offset - 0x400) / 4;
    const uint64_t was = events_[i].total(source(i));
    types_[i] = value & 0xffff;
    events_[i].set(source(i), was);
  }
  switch (offset) {
    case 0x07c:
      setCounter(kEvents, value);
      break;
    case 0xc00:
      pmuEnabled_ |= value & mask;
      break;
    case 0xc20:
      pmuEnabled_ &= ~value;
      break;
    case 0xc40:
      pmuInterrupts_ |= value & mask;
      break;
    case 0xc60:
      pmuInterrupts_ &= ~value;
      break;
    case 0xc80:
      clearOverflows(value);
      break;
    case 0xca0:
      for (uint32_t i = 0; i < kEvents; ++i) {
        const bool counts = (value & pmuEnabled_ & 1u << i) != 0 && types_[i] == kSoftwareIncrement;
        if (counts && (pmuControl_ & 1) != 0) events_[i].set(source(i), events_[i].total(source(i)) + 1);
      }
      break;
    case 0xe04:
      pmuControl_ = value & ~6u;
      if ((value & 2) != 0) {
        for (uint32_t i = 0; i < kEvents; ++i) setCounter(i, 0);
      }
      if ((value & 4) != 0) setCounter(kEvents, 0);
      break;
    default:
      break;
  }
  update();
}

}  // namespace carina::platform
