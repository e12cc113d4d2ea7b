// SPDX-License-Identifier: Apache-2.0
// Sources: application notes of the MPS3 FPGA images (registers of the character LCD interface), data sheet
// of Himax HX8347-D (window, memory access control, memory write).
#include "platform/display.hpp"

namespace carina::platform {
namespace {

// The bus: command, data, read data, raw interrupt, mask, status, pins.
constexpr uint32_t kBusCommand = 0x00, kBusData = 0x04, kBusReadData = 0x08, kBusRaw = 0x0c, kBusMask = 0x10,
                   kBusStatus = 0x14, kBusPins = 0x4c;
constexpr uint32_t kResetPin = 1u << 3;

// The controller's registers.
constexpr uint32_t kProductCode = 0x00, kLeft = 0x02, kRight = 0x04, kTop = 0x06, kBottom = 0x08,
                   kAccess = 0x16, kMemory = 0x22;
constexpr uint8_t kProduct = 0x47;
constexpr uint8_t kMirrorRows = 0x80, kMirrorColumns = 0x40, kExchange = 0x20;

}  // namespace

bool Display::landscape() const {
  return (registers_[kAccess] & kExchange) != 0;
}

void Display::reset() {
  registers_ = {};
  registers_[kRight + 1] = kShort - 1;
  registers_[kBottom] = (kLong - 1) >> 8;
  registers_[kBottom + 1] = (kLong - 1) & 0xff;
  index_ = 0;
  second_ = false;
}

void Display::select(uint32_t index) {
  index_ = index & 0xff;
  second_ = false;
  if (index_ != kMemory) return;
  x_ = pair(kLeft);
  y_ = pair(kTop);
  drawn_ = 0;
}

size_t Display::placeOf(uint32_t x, uint32_t y) const {
  uint32_t column = landscape() ? y : x, row = landscape() ? x : y;
  if ((registers_[kAccess] & kMirrorColumns) != 0) column = kShort - 1 - column;
  if ((registers_[kAccess] & kMirrorRows) != 0) row = kLong - 1 - row;
  return size_t{row} * kShort + column;
}

void Display::draw(uint16_t pixel) {
  if (x_ < width() && y_ < height()) memory_[placeOf(x_, y_)] = pixel;
  changed_ = true;
  written_ = clock_.now();
  ++drawn_;
  if (x_++ < pair(kRight)) return;
  x_ = pair(kLeft);
  if (y_++ < pair(kBottom)) return;
  y_ = pair(kTop);
  if (drawn_ == width() * height()) give();
  drawn_ = 0;
}

void Display::writeData(uint8_t byte) {
  if (index_ != kMemory) {
    registers_[index_] = byte;  // of two bytes, the second one takes effect
    return;
  }
  if (second_) draw(static_cast<uint16_t>(first_ << 8 | byte));
  first_ = byte;
  second_ = !second_;
}

uint32_t Display::read(uint32_t offset) {
  switch (offset) {
    case kBusReadData:
      return index_ == kProductCode ? kProduct : registers_[index_];
    case kBusRaw:
      return 1;  // every access completes immediately
    case kBusMask:
      return mask_;
    case kBusStatus:
      return mask_ & 1;
    case kBusPins:
      return pins_;
    default:
      return 0;
  }
}

void Display::write(uint32_t offset, uint32_t value) {
  switch (offset) {
    case kBusCommand:
      select(value);
      break;
    case kBusData:
      writeData(static_cast<uint8_t>(value));
      break;
    case kBusMask:
      mask_ = value;
      break;
    case kBusPins:
      if ((pins_ & kResetPin) != 0 && (value & kResetPin) == 0) reset();
      pins_ = value & 0x7f;
      break;
    default:
      break;
  }
}

void Display::give() {
  changed_ = false;
  if (frame_) frame_(picture());
}

void Display::advance(uint64_t now) {
  if (now >= nextEvent()) give();
}

void Display::finish() {
  if (changed_) give();
}

Picture Display::picture() const {
  Picture picture{width(), height(), std::vector<uint8_t>(memory_.size() * 3)};
  for (uint32_t y = 0; y < height(); ++y) {
    for (uint32_t x = 0; x < width(); ++x)
      Pixel565::to(memory_[placeOf(x, y)], picture.rgb.data() + (size_t{y} * width() + x) * 3);
  }
  return picture;
}

}  // namespace carina::platform
