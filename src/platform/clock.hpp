// SPDX-License-Identifier: Apache-2.0
// Simulated time, in cycles of the clock that core, timers and NPU share. Instructions take the cycles of the
// core's pipeline model; waiting adds the time waited.
#pragma once

#include <cstdint>
#include <limits>

namespace carina::cpu_m {
class Core;
}

namespace carina::platform {

/// Frequency of the board's clock, as assumed by firmware for these boards.
constexpr uint32_t kCoreHz = 25'000'000;

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

class Clock {
 public:
  void attach(const cpu_m::Core& cpu) { cpu_ = &cpu; }
  uint64_t now() const;
  /// Advances to `time` without executing instructions.
  void skipTo(uint64_t time) {
    if (time > now()) skipped_ += time - now();
  }
  /// Instructions executed so far.
  uint64_t instructions() const;

 private:
  const cpu_m::Core* cpu_ = nullptr;
  uint64_t skipped_ = 0;
};

/// A source of timed events.
class Timed {
 public:
  /// The time of the next event; kNever if there is none.
  virtual uint64_t nextEvent() const = 0;
  /// Processes all events up to `now`.
  virtual void advance(uint64_t now) = 0;

 protected:
  ~Timed() = default;
};

}  // namespace carina::platform
