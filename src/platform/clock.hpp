// SPDX-License-Identifier: Apache-2.0
// Simulated time, in cycles of the one clock that core, timers and NPU share: instructions take what the
// core's pipeline says, waiting takes what it takes.
#pragma once

#include <cstdint>
#include <limits>

namespace carina::cpu_m {
class Core;
}

namespace carina::platform {

/// Cycles of the board's clock in a second: what firmware for these boards assumes.
constexpr uint32_t kCoreHz = 25'000'000;

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

class Clock {
 public:
  void attach(const cpu_m::Core& cpu) { cpu_ = &cpu; }
  uint64_t now() const;
  /// Passes time without instructions, up to `time`.
  void skipTo(uint64_t time) {
    if (time > now()) skipped_ += time - now();
  }
  /// Instructions executed so far.
  uint64_t instructions() const;

 private:
  const cpu_m::Core* cpu_ = nullptr;
  uint64_t skipped_ = 0;
};

/// What happens by itself as time passes.
class Timed {
 public:
  /// When something happens next; kNever when nothing will.
  virtual uint64_t nextEvent() const = 0;
  /// Makes everything up to `now` happen.
  virtual void advance(uint64_t now) = 0;

 protected:
  ~Timed() = default;
};

}  // namespace carina::platform
