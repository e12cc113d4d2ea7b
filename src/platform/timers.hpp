// SPDX-License-Identifier: Apache-2.0
// Counters of the core: SysTick, the DWT cycle counter and the Armv8.1-M PMU. All count the platform's clock.
#pragma once

#include <array>

#include "platform/clock.hpp"
#include "platform/interrupts.hpp"

namespace carina::platform {

/// Registers at offsets from 0xe000e010.
class SysTick final : public Timed {
 public:
  SysTick(const Clock& clock, Interrupts& interrupts, World world)
      : clock_(clock), interrupts_(interrupts), exception_(ofWorld(kSysTick, world)) {}

  uint32_t read(uint32_t offset);
  void write(uint32_t offset, uint32_t value);
  /// Without its interrupt, no event is needed: reads determine later what happened.
  uint64_t nextEvent() const override { return (control_ & kInterrupts) != 0 ? zeroAt_ : kNever; }
  void advance(uint64_t now) override;

 private:
  static constexpr uint32_t kInterrupts = 1u << 1;  // CTRL.TICKINT
  uint32_t value(uint64_t now) const;
  /// Sets the counter to `value` now and computes when it reaches 0.
  void restart(uint64_t now, uint32_t value);

  const Clock& clock_;
  Interrupts& interrupts_;
  uint32_t exception_;
  uint32_t control_ = 0, reload_ = 0;
  uint32_t held_ = 0;         // value while the counter is stopped
  uint64_t zeroAt_ = kNever;  // when the counter next becomes 0
  bool counted_ = false;      // COUNTFLAG
};

/// Counts the increase of a monotonic source.
class Counter {
 public:
  uint64_t total(uint64_t source) const { return running_ ? source - base_ : held_; }
  uint32_t value(uint64_t source) const { return static_cast<uint32_t>(total(source)); }
  void set(uint64_t source, uint64_t value) {
    held_ = value;
    base_ = source - value;
  }
  void run(uint64_t source, bool on) {
    if (on == running_) return;
    const uint64_t now = total(source);
    running_ = on;
    set(source, now);
  }

 private:
  bool running_ = false;
  uint64_t held_ = 0, base_ = 0;
};

/// DWT at 0xe0001000 (cycle counter), PMU at 0xe0003000, and DEMCR, which enables both.
class CycleCounters {
 public:
  explicit CycleCounters(const Clock& clock) : clock_(clock) {}

  uint32_t readDwt(uint32_t offset) const;
  void writeDwt(uint32_t offset, uint32_t value);
  uint32_t readPmu(uint32_t offset) const;
  void writePmu(uint32_t offset, uint32_t value);
  uint32_t demcr() const { return demcr_; }
  void writeDemcr(uint32_t value);

 private:
  static constexpr uint32_t kEvents = 8;
  void update();
  /// What counter `i` counts: cycles, retired instructions, or overflows of the preceding counter; software
  /// increments are added when they are written. Other events stay 0.
  uint64_t source(uint32_t i) const;
  /// Number of overflows of a counter; the last one is the cycle counter.
  uint64_t overflows(uint32_t i) const;
  uint32_t overflowBits() const;
  void clearOverflows(uint32_t bits);
  /// Sets a counter; its overflow status does not change.
  void setCounter(uint32_t i, uint64_t count);

  const Clock& clock_;
  uint32_t demcr_ = 0, dwtControl_ = 0, pmuControl_ = 0, pmuEnabled_ = 0, pmuInterrupts_ = 0;
  Counter dwtCycles_, pmuCycles_;
  std::array<Counter, kEvents> events_;
  std::array<uint32_t, kEvents> types_{};
  std::array<uint64_t, kEvents + 1> seenOverflows_{};  // those that were cleared
};

}  // namespace carina::platform
