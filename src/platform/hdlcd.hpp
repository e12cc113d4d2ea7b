// SPDX-License-Identifier: Apache-2.0
// HDLCD, the display controller of Corstone-315 and 320: it continuously shows a frame buffer in memory.
#pragma once

#include <functional>
#include <vector>

#include "platform/bus.hpp"
#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"
#include "platform/picture.hpp"

namespace carina::platform {

/// A pixel takes a cycle. A frame is read all at once, when its time has passed; it is emitted if it differs
/// from the previous one.
class Hdlcd final : public Peripheral, public Timed {
 public:
  Hdlcd(const Clock& clock, Interrupts& interrupts, uint32_t interrupt, const Bus& bus);
  /// Receives every frame; without it, none are read.
  void setFrame(std::function<void(const Picture&)> frame) { frame_ = std::move(frame); }

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override;
  void advance(uint64_t now) override;
  /// Emits what has changed since the last complete frame.
  void finish();

  /// Number of unchanged frames after which, unless an interrupt is enabled, frames are no longer events.
  static constexpr uint32_t kQuiet = 60;

 private:
  uint32_t& at(uint32_t offset) { return registers_[offset / 4]; }
  uint32_t at(uint32_t offset) const { return registers_[offset / 4]; }
  bool on() const;
  uint64_t period() const;
  uint32_t width() const;
  uint32_t height() const;
  void show();
  Picture picture() const;
  void update();

  const Clock& clock_;
  Interrupts& interrupts_;
  uint32_t interrupt_;
  const Bus& bus_;
  std::function<void(const Picture&)> frame_;
  std::vector<uint32_t> registers_;
  uint32_t raw_ = 0;
  uint64_t end_ = 0;  // of the current frame
  uint32_t quiet_ = 0;
  std::vector<uint8_t> shown_;  // pixels of the latest frame that was emitted
};

}  // namespace carina::platform
