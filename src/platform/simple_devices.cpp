// SPDX-License-Identifier: Apache-2.0
#include "platform/simple_devices.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kAdapterMode = 0x28, kAdapterMaxPending = 0x2c, kAdapterVersion = 0x38;
/// Writable bits of each register of the timing adapter.
constexpr std::array<uint32_t, TimingAdapter::kSize / 4> kAdapterMasks = {
    0x3f, 0x3f, 0x3f, 0xfff, 0xfff, 0xffff, 0xffff, 0xffff, 0x3f, 0xffffffff, 0xfff, 0, 0xf, 0xffffffff, 0};

constexpr uint32_t kClock1Hz = 0x10, kClock100Hz = 0x14, kCounter = 0x18;

// The configuration controller: read-only words, and the mailbox to the board's microcontroller.
constexpr uint32_t kSccBoardRevision = 0x10, kSccCoreClock = 0x14, kSccReturned = 0xa0, kSccRequest = 0xa8,
                   kSccState = 0xac, kSccIdentity = 0xffc;
constexpr uint32_t kStart = 1u << 31, kWrites = 1u << 30;
constexpr uint32_t kOscillator = 1;  // function, bits 20 to 25 of a request

}  // namespace

uint32_t TimingAdapter::read(uint32_t offset) {
  if (offset >= kSize) return 0;
  if (offset == kAdapterVersion) return 0x1117;
  if (offset == kAdapterMaxPending) return 0x3f;
  if (offset == kAdapterMode) return registers_[offset / 4] | 1;  // the dynamic clock is always present
  return registers_[offset / 4];
}

void TimingAdapter::write(uint32_t offset, uint32_t value) {
  if (offset >= kSize) return;
  registers_[offset / 4] = value & kAdapterMasks[offset / 4];
  written_ = true;
}

uint64_t FpgaIo::ticks(uint32_t offset) const {
  switch (offset) {
    case kClock1Hz:
      return clock_.now() / kCoreHz;
    case kClock100Hz:
      return clock_.now() / (kCoreHz / 100);
    default:
      return clock_.now();
  }
}

uint32_t FpgaIo::read(uint32_t offset) {
  if (offset / 4 >= registers_.size()) return 0;
  if (offset == kClock1Hz || offset == kClock100Hz || offset == kCounter)
    return static_cast<uint32_t>(ticks(offset) - base_[offset / 4]);
  return registers_[offset / 4];
}

void FpgaIo::write(uint32_t offset, uint32_t value) {
  if (offset / 4 >= registers_.size()) return;
  registers_[offset / 4] = value;
  base_[offset / 4] = ticks(offset) - value;
}

uint32_t ConfigurationController::read(uint32_t offset) {
  if (offset == kSccCoreClock) return kCoreHz;
  if (offset == kSccState) return complete_ ? 1 : 0;
  if (offset == kSccIdentity) return id_;
  return offset / 4 < registers_.size() ? registers_[offset / 4] : 0;
}

void ConfigurationController::write(uint32_t offset, uint32_t value) {
  if (offset == kSccState) complete_ = false;
  if (offset / 4 >= registers_.size() || offset == kSccBoardRevision || offset == kSccCoreClock) return;
  registers_[offset / 4] = value & ~(offset == kSccRequest ? kStart : 0);
  if (offset != kSccRequest || (value & kStart) == 0) return;
  // Requests complete immediately. Every oscillator runs at the core's rate; other functions give 0.
  complete_ = true;
  if ((value & kWrites) == 0)
    registers_[kSccReturned / 4] = (value >> 20 & 0x3f) == kOscillator ? kCoreHz : 0;
}

}  // namespace carina::platform
