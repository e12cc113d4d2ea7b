// SPDX-License-Identifier: Apache-2.0
// The subsystem's timers: a counter that software enables, timers that compare with it, and watchdogs.
#pragma once

#include <functional>

#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"

namespace carina::platform {

/// The control frame of the system counter. It counts cycles while it is enabled.
class SystemCounter final : public Peripheral {
 public:
  explicit SystemCounter(const Clock& clock) : clock_(clock) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

  uint64_t value() const { return enabled_ ? value_ + (clock_.now() - since_) : value_; }
  /// When the counter reaches `target`: now, if it already has; kNever, if it is stopped.
  uint64_t timeOf(uint64_t target) const;

 private:
  const Clock& clock_;
  bool enabled_ = false, haltOnDebug_ = false;
  uint64_t value_ = 0, since_ = 0;
};

/// The part of it that code of both worlds may read.
class SystemCounterView final : public Peripheral {
 public:
  explicit SystemCounterView(const SystemCounter& counter) : counter_(counter) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t, uint32_t) override {}

 private:
  const SystemCounter& counter_;
};

/// A timer: compares the counter with a value, or, in automatic mode, with one that advances by a period.
class SystemTimer final : public Peripheral, public Timed {
 public:
  SystemTimer(const SystemCounter& counter, Interrupts& interrupts, uint32_t line)
      : counter_(counter), interrupts_(interrupts), line_(line) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override;
  void advance(uint64_t now) override;

 private:
  bool reached() const { return automatic_ ? expired_ : counter_.value() >= compare_; }
  void update();

  const SystemCounter& counter_;
  Interrupts& interrupts_;
  uint32_t line_;
  uint32_t frequency_ = 0, period_ = 0;
  uint64_t compare_ = 0, automaticCompare_ = 0;
  bool enabled_ = false, masked_ = false, automatic_ = false, expired_ = false;
};

/// A watchdog: its first time-out is an interrupt, its second one in a row a reset.
class Watchdog final : public Peripheral, public Timed {
 public:
  /// `interrupt` receives changes of the first time-out's signal.
  Watchdog(const SystemCounter& counter, std::function<void(bool)> interrupt, std::function<void()> reset)
      : counter_(counter), interrupt_(std::move(interrupt)), reset_(std::move(reset)) {}
  /// The control frame; the refresh frame is 4 KiB above it.
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override;
  void advance(uint64_t now) override;

 private:
  void refresh();

  const SystemCounter& counter_;
  std::function<void(bool)> interrupt_;
  std::function<void()> reset_;
  uint64_t offset_ = 0, compare_ = 0;
  bool enabled_ = false, first_ = false, second_ = false;
};

}  // namespace carina::platform
