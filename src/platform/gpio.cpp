// SPDX-License-Identifier: Apache-2.0
// Source: Cortex-M System Design Kit Technical Reference Manual, AHB GPIO.
#include "platform/gpio.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kDataIn = 0x00, kDataOut = 0x04, kOutputSet = 0x10, kAlternateSet = 0x18,
                   kEnableSet = 0x20, kEdgeSet = 0x28, kHighSet = 0x30, kPinInterrupts = 0x38,
                   kLowBytes = 0x400, kHighBytes = 0x800, kHighBytesEnd = 0xc00;
constexpr uint32_t kAllPins = (1u << Gpio::kPins) - 1;

}  // namespace

void Gpio::update(uint32_t before) {
  const uint32_t now = pins(), active = ~(now ^ high_);  // at the active level
  const uint32_t edges = edge_ & (now ^ before) & active, levels = ~edge_ & active;
  pending_ = (pending_ | edges | levels) & enabled_ & kAllPins;
  interrupt_(pending_);
}

void Gpio::setOut(uint32_t value) {
  const uint32_t before = pins();
  out_ = value & kAllPins;
  update(before);
}

void Gpio::drive(uint32_t pin, bool high) {
  const uint32_t before = pins();
  in_ = (in_ & ~(1u << pin)) | (high ? 1u << pin : 0);
  update(before);
}

uint32_t Gpio::read(uint32_t offset) {
  if (offset >= kLowBytes && offset < kHighBytesEnd) {
    const uint32_t mask = offset >> 2 & 0xff;
    return pins() & (offset < kHighBytes ? mask : mask << 8);
  }
  switch (offset) {
    case kDataIn:
      return pins();
    case kDataOut:
      return out_;
    case kOutputSet:
    case kOutputSet + 4:
      return outputs_;
    case kAlternateSet:
    case kAlternateSet + 4:
      return alternate_;
    case kEnableSet:
    case kEnableSet + 4:
      return enabled_;
    case kEdgeSet:
    case kEdgeSet + 4:
      return edge_;
    case kHighSet:
    case kHighSet + 4:
      return high_;
    case kPinInterrupts:
      return pending_;
    default:
      return 0;
  }
}

void Gpio::write(uint32_t offset, uint32_t value) {
  if (offset >= kLowBytes && offset < kHighBytesEnd) {
    const uint32_t mask = (offset >> 2 & 0xff) << (offset < kHighBytes ? 0 : 8);
    setOut((out_ & ~mask) | (value & mask));
    return;
  }
  const uint32_t before = pins();
  value &= kAllPins;
  const auto change = [&](uint32_t set, uint32_t& bits) {
    if (offset == set) bits |= value;
    if (offset == set + 4) bits &= ~value;
  };
  if (offset == kDataIn || offset == kDataOut) out_ = value;
  change(kOutputSet, outputs_);
  change(kAlternateSet, alternate_);
  change(kEnableSet, enabled_);
  change(kEdgeSet, edge_);
  change(kHighSet, high_);
  if (offset == kPinInterrupts) pending_ &= ~value;
  update(before);
}

}  // namespace carina::platform
