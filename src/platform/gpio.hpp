// SPDX-License-Identifier: Apache-2.0
// General-purpose I/O: ports of 16 pins (CMSDK).
#pragma once

#include <functional>

#include "platform/device.hpp"

namespace carina::platform {

class Gpio final : public Peripheral {
 public:
  static constexpr uint32_t kPins = 16;

  /// `interrupt` receives the pins that request an interrupt whenever they may have changed.
  explicit Gpio(std::function<void(uint32_t pins)> interrupt) : interrupt_(std::move(interrupt)) {}

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  /// Sets the level that is applied to a pin.
  void drive(uint32_t pin, bool high);

 private:
  uint32_t pins() const { return (out_ & outputs_) | (in_ & ~outputs_); }
  void setOut(uint32_t value);
  /// Updates the interrupts after a change of the pins or of the conditions that raise one.
  void update(uint32_t before);

  std::function<void(uint32_t)> interrupt_;
  uint32_t in_ = 0, out_ = 0, outputs_ = 0, alternate_ = 0;
  uint32_t enabled_ = 0, edge_ = 0, high_ = 0;  // of interrupts; rising edges and high levels
  uint32_t pending_ = 0;
};

}  // namespace carina::platform
