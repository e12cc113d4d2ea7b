// SPDX-License-Identifier: Apache-2.0
#include "platform/simple_devices.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kMode = 0x28, kMaxPending = 0x2c, kVersion = 0x38;
/// Bits that each register of the timing adapter keeps.
constexpr std::array<uint32_t, TimingAdapter::kSize / 4> kAdapterMasks = {
    0x3f, 0x3f, 0x3f, 0xfff, 0xfff, 0xffff, 0xffff, 0xffff, 0x3f, 0xffffffff, 0xfff, 0, 0xf, 0xffffffff, 0};

constexpr uint32_t kClock1Hz = 0x10, kClock100Hz = 0x14, kCounter = 0x18;
/// What firmware for these boards assumes.
constexpr uint64_t kCoreHz = 25'000'000;

}  // namespace

uint32_t TimingAdapter::read(uint32_t offset) {
  if (offset >= kSize) return 0;
  if (offset == kVersion) return 0x1117;
  if (offset == kMaxPending) return 0x3f;
  if (offset == kMode) return registers_[offset / 4] | 1;  // the dynamic clock is always there
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

}  // namespace carina::platform
