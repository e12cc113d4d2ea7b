// SPDX-License-Identifier: Apache-2.0
// The display of the MPS3 boards: a controller for 240 x 320 pixels that is written byte by byte.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/picture.hpp"

namespace carina::platform {

/// A frame is complete when the firmware has written the whole screen in one pass, or has written part of it
/// and then nothing for kStill cycles.
class Display final : public Peripheral, public Timed {
 public:
  static constexpr uint64_t kStill = kCoreHz / 50;

  explicit Display(const Clock& clock) : clock_(clock) {}
  /// Receives every frame; without it, no frames are produced.
  void setFrame(std::function<void(const Picture&)> frame) { frame_ = std::move(frame); }

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override { return changed_ && frame_ ? written_ + kStill : kNever; }
  void advance(uint64_t now) override;
  /// Emits what has not yet become a frame.
  void finish();

  /// The contents of the screen, in the orientation that the firmware uses.
  Picture picture() const;

 private:
  static constexpr uint32_t kShort = 240, kLong = 320;

  void reset();
  void select(uint32_t index);
  void writeData(uint8_t byte);
  void draw(uint16_t pixel);
  bool landscape() const;
  uint32_t width() const { return landscape() ? kLong : kShort; }
  uint32_t height() const { return landscape() ? kShort : kLong; }
  /// Index of the firmware's pixel (x, y) in the memory of the controller.
  size_t placeOf(uint32_t x, uint32_t y) const;
  uint32_t pair(uint32_t high) const { return uint32_t{registers_[high]} << 8 | registers_[high + 1]; }
  void give();

  const Clock& clock_;
  std::function<void(const Picture&)> frame_;
  std::array<uint8_t, 256> registers_{};  // of the controller
  uint32_t pins_ = 0, mask_ = 0;          // of the bus in front of it
  uint32_t index_ = 0;
  uint32_t x_ = 0, y_ = 0;
  uint32_t drawn_ = 0;  // pixels since the window was started
  bool second_ = false;
  uint8_t first_ = 0;  // byte of a pixel
  std::vector<uint16_t> memory_ = std::vector<uint16_t>(size_t{kShort} * kLong);
  bool changed_ = false;
  uint64_t written_ = 0;
};

}  // namespace carina::platform
