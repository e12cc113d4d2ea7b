// SPDX-License-Identifier: Apache-2.0
// Sources: UM10204, the I2C-bus specification; application notes of the MPS3 FPGA images (bit 0 the clock,
// bit 1 the data); data sheet of STMPE811 (registers, data of 12 bits packed into bytes).
#include "platform/two_wire.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kSetPins = 0, kClearPins = 4;
constexpr uint32_t kClockPin = 1, kDataPin = 2;
constexpr uint32_t kByteBits = 8;

// Registers of the touch screen controller.
constexpr uint8_t kTouchChipId = 0x00, kTouchVersion = 0x02, kTouchSystemControl = 0x03,
                  kTouchInterruptControl = 0x09, kTouchInterruptEnable = 0x0a, kTouchInterruptStatus = 0x0b,
                  kTouchControl = 0x40, kTouchQueueStatus = 0x4b, kTouchQueueSize = 0x4c, kTouchDataX = 0x4d,
                  kTouchDataY = 0x4f, kTouchDataZ = 0x51, kTouchData = 0x57, kTouchDataFixed = 0xd7;
constexpr uint8_t kSoftReset = 2, kTouches = 0x80, kQueueEmpty = 0x20, kPressure = 0x40;
constexpr uint8_t kTouchDetected = 1, kQueueThreshold = 2;

}  // namespace

// --- the touch screen

void TouchController::reset() {
  registers_ = {};
  part_ = 0;
  raise(0);
}

bool TouchController::measures() const {
  return pressed_ && (registers_[kTouchControl] & 1) != 0;
}

void TouchController::raise(uint8_t causes) {
  registers_[kTouchInterruptStatus] |= causes;
  interrupts_.setLine(interrupt_,
                      (registers_[kTouchInterruptControl] & 1) != 0 &&
                          (registers_[kTouchInterruptStatus] & registers_[kTouchInterruptEnable]) != 0);
}

void TouchController::press(uint32_t x, uint32_t y) {
  const bool was = pressed_;
  x_ = x & 0xfff;
  y_ = y & 0xfff;
  pressed_ = true;
  part_ = 0;
  if (measures()) raise(static_cast<uint8_t>(kQueueThreshold | (was ? 0 : kTouchDetected)));
}

void TouchController::release() {
  const bool measured = measures();
  pressed_ = false;
  if (measured) raise(kTouchDetected);
}

uint8_t TouchController::read(uint8_t reg) {
  const auto low = [](uint32_t value) { return static_cast<uint8_t>(value); };
  switch (reg) {
    case kTouchChipId:
      return 0x08;
    case kTouchChipId + 1:
      return 0x11;
    case kTouchVersion:
      return 0x03;
    case kTouchControl:
      return low(registers_[reg] | (measures() ? kTouches : 0));
    case kTouchQueueStatus:
      return low(registers_[reg] | (measures() ? 0 : kQueueEmpty));
    case kTouchQueueSize:
      return measures() ? 1 : 0;
    case kTouchDataX:
    case kTouchDataX + 1:
      return low(reg == kTouchDataX ? x_ >> 8 : x_);
    case kTouchDataY:
    case kTouchDataY + 1:
      return low(reg == kTouchDataY ? y_ >> 8 : y_);
    case kTouchDataZ:
      return kPressure;
    case kTouchData:
    case kTouchDataFixed: {
      const uint8_t parts[] = {low(x_ >> 4), low(x_ << 4 | y_ >> 8), low(y_), kPressure};
      return parts[part_++ % 4];
    }
    default:
      return registers_[reg];
  }
}

void TouchController::write(uint8_t reg, uint8_t value) {
  if (reg == kTouchInterruptStatus) {
    registers_[reg] &= static_cast<uint8_t>(~value);
  } else if (reg == kTouchSystemControl && (value & kSoftReset) != 0) {
    reset();
  } else {
    registers_[reg] = value;
    if (reg == kTouchQueueStatus) part_ = 0;
  }
  raise(0);
}

uint8_t TouchController::next(uint8_t reg) const {
  return reg == kTouchData || reg == kTouchDataFixed ? reg : static_cast<uint8_t>(reg + 1);
}

// --- the bus

void TwoWireBus::start() {
  phase_ = Phase::Address;
  bits_ = 0;
  byte_ = 0;
  held_ = sent_ = false;
}

bool TwoWireBus::take(uint8_t byte) {
  switch (phase_) {
    case Phase::Address:
      if (byte >> 1 != address_) {
        phase_ = Phase::Idle;
        return false;
      }
      phase_ = (byte & 1) != 0 ? Phase::Read : Phase::Register;
      return true;
    case Phase::Register:
      register_ = byte;
      phase_ = Phase::Write;
      return true;
    case Phase::Write:
      device_.write(register_, byte);
      register_ = device_.next(register_);
      return true;
    default:
      return false;
  }
}

void TwoWireBus::clockRose() {
  if (phase_ == Phase::Idle) return;
  if (bits_ < kByteBits) {
    if (phase_ != Phase::Read) byte_ = static_cast<uint8_t>(byte_ << 1 | (data_ ? 1 : 0));
  } else {
    acknowledged_ = !data_;
  }
  ++bits_;
}

void TwoWireBus::clockFell() {
  if (phase_ == Phase::Idle) return;
  const bool reads = phase_ == Phase::Read;
  if (bits_ == kByteBits) {  // the acknowledgement follows
    held_ = !reads && take(byte_);
    return;
  }
  if (bits_ > kByteBits) {  // the next byte
    bits_ = 0;
    held_ = false;
    if (sent_ && !acknowledged_) phase_ = Phase::Idle;
  }
  if (phase_ != Phase::Read) return;
  if (bits_ == 0) {
    sent_ = true;
    byte_ = device_.read(register_);
    register_ = device_.next(register_);
  }
  held_ = (byte_ >> (kByteBits - 1 - bits_) & 1) == 0;
}

uint32_t TwoWireBus::read(uint32_t offset) {
  if (offset != kSetPins) return 0;
  return (clock_ ? kClockPin : 0) | (data_ && !held_ ? kDataPin : 0);
}

void TwoWireBus::write(uint32_t offset, uint32_t value) {
  if (offset != kSetPins && offset != kClearPins) return;
  const bool level = offset == kSetPins;
  // A store may change both pins: the data pin changes first, while the clock is stable.
  if ((value & kDataPin) != 0 && data_ != level) {
    data_ = level;
    if (clock_ && level) phase_ = Phase::Idle;  // a stop
    if (clock_ && level) held_ = false;
    if (clock_ && !level) start();
  }
  if ((value & kClockPin) != 0 && clock_ != level) {
    clock_ = level;
    if (level)
      clockRose();
    else
      clockFell();
  }
}

}  // namespace carina::platform
