// SPDX-License-Identifier: Apache-2.0
// Source: the registers in Arm's Technical Reference Manual of the HDLCD controller.
#include "platform/hdlcd.hpp"

#include <algorithm>

namespace carina::platform {
namespace {

constexpr uint32_t kHdlcdVersion = 0x000, kHdlcdRaw = 0x010, kHdlcdClear = 0x014, kHdlcdMask = 0x018,
                   kHdlcdStatus = 0x01c, kHdlcdBase = 0x100, kHdlcdLineLength = 0x104,
                   kHdlcdLineCount = 0x108, kHdlcdLinePitch = 0x10c, kHdlcdVSync = 0x200, kHdlcdVData = 0x208,
                   kHdlcdHSync = 0x210, kHdlcdHData = 0x218, kHdlcdCommand = 0x230, kHdlcdFormat = 0x240,
                   kHdlcdRed = 0x244, kHdlcdSize = 0x250;
constexpr uint32_t kHdlcdIdentity = 0x1cdc0000;
/// Interrupts: frame read, bus error, vertical synchronization, underrun.
constexpr uint32_t kFrameRead = 1, kFrameBusError = 2, kFrameSync = 4, kInterruptBits = 15;
constexpr uint32_t kBigEndian = 1u << 31, kTiming = 0xfff;

/// A colour component of a pixel as described by a SELECT register (position and number of its bits), scaled
/// to 8 bits.
uint8_t colour(uint32_t pixel, uint32_t select) {
  const uint32_t bits = std::min(select >> 8 & 15, 8u), full = (1u << bits) - 1;
  return full == 0 ? 0 : static_cast<uint8_t>((pixel >> (select & 31) & full) * 255 / full);
}

}  // namespace

Hdlcd::Hdlcd(const Clock& clock, Interrupts& interrupts, uint32_t interrupt, const Bus& bus)
    : clock_(clock), interrupts_(interrupts), interrupt_(interrupt), bus_(bus), registers_(kHdlcdSize / 4) {}

bool Hdlcd::on() const {
  return (at(kHdlcdCommand) & 1) != 0;
}
uint32_t Hdlcd::width() const {
  return (at(kHdlcdHData) & kTiming) + 1;
}
uint32_t Hdlcd::height() const {
  return (at(kHdlcdVData) & kTiming) + 1;
}

uint64_t Hdlcd::period() const {
  // Synchronization, back porch, data, front porch; each register holds the value minus 1.
  uint64_t lines = 0, pixels = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    lines += (at(kHdlcdVSync + 4 * i) & kTiming) + 1;
    pixels += (at(kHdlcdHSync + 4 * i) & kTiming) + 1;
  }
  return lines * pixels;
}

void Hdlcd::update() {
  interrupts_.setLine(interrupt_, (raw_ & at(kHdlcdMask)) != 0);
}

uint32_t Hdlcd::read(uint32_t offset) {
  advance(clock_.now());
  switch (offset) {
    case kHdlcdVersion:
      return kHdlcdIdentity;
    case kHdlcdRaw:
      return raw_;
    case kHdlcdClear:
      return 0;
    case kHdlcdStatus:
      return raw_ & at(kHdlcdMask);
    default:
      return offset < kHdlcdSize ? at(offset) : 0;
  }
}

void Hdlcd::write(uint32_t offset, uint32_t value) {
  advance(clock_.now());
  quiet_ = 0;
  if (offset == kHdlcdRaw) {
    raw_ |= value & kInterruptBits;
  } else if (offset == kHdlcdClear) {
    raw_ &= ~value;
  } else if (offset == kHdlcdMask) {
    at(kHdlcdMask) = value & kInterruptBits;
  } else if (offset < kHdlcdSize && offset != kHdlcdVersion && offset != kHdlcdStatus) {
    const bool before = on();
    at(offset) = value;
    if (!before && on()) end_ = clock_.now() + period();
  }
  update();
}

uint64_t Hdlcd::nextEvent() const {
  const bool wanted = at(kHdlcdMask) != 0 || (frame_ && quiet_ < kQuiet);
  return on() && wanted ? end_ : kNever;
}

void Hdlcd::advance(uint64_t now) {
  if (!on() || now < end_) return;
  // Of several frames since the last call, only the last one is shown.
  const uint64_t frames = (now - end_) / period() + 1;
  end_ += frames * period();
  raw_ |= kFrameRead | kFrameSync;
  show();
  update();
}

void Hdlcd::show() {
  if (bus_.find(at(kHdlcdBase), 1) == nullptr) raw_ |= kFrameBusError;
  if (!frame_) return;
  Picture now = picture();
  if (now.rgb == shown_) {
    quiet_ = std::min(quiet_ + 1, kQuiet);
    return;
  }
  quiet_ = 0;
  frame_(now);
  shown_ = std::move(now.rgb);
}

void Hdlcd::finish() {
  if (on()) show();
}

Picture Hdlcd::picture() const {
  const uint32_t bytes = (at(kHdlcdFormat) >> 3 & 3) + 1;
  const bool big = (at(kHdlcdFormat) & kBigEndian) != 0;
  const uint32_t lines = std::min<uint64_t>(uint64_t{at(kHdlcdLineCount)} + 1, height());
  const uint32_t pixels = std::min(at(kHdlcdLineLength) / bytes, width());
  Picture picture{width(), height(), std::vector<uint8_t>(size_t{width()} * height() * 3)};
  for (uint32_t y = 0; y < lines; ++y) {
    const std::byte* from = bus_.find(at(kHdlcdBase) + y * at(kHdlcdLinePitch), uint64_t{pixels} * bytes);
    if (from == nullptr) continue;
    uint8_t* to = picture.rgb.data() + size_t{y} * width() * 3;
    for (uint32_t x = 0; x < pixels; ++x, from += bytes, to += 3) {
      uint32_t pixel = 0;
      for (uint32_t i = 0; i < bytes; ++i)
        pixel |= std::to_integer<uint32_t>(from[i]) << 8 * (big ? bytes - 1 - i : i);
      for (uint32_t i = 0; i < 3; ++i) to[i] = colour(pixel, at(kHdlcdRed + 4 * i));
    }
  }
  return picture;
}

}  // namespace carina::platform
