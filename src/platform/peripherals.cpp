// SPDX-License-Identifier: Apache-2.0
#include "platform/peripherals.hpp"

#include <algorithm>

namespace carina::platform {
namespace {
constexpr size_t kMaxUnknown = 64;
}

const Peripherals::Entry* Peripherals::find(uint32_t address) const {
  const uint32_t plain = address & ~kSecureBit;
  for (const Entry& entry : entries_) {
    const uint32_t at = (entry.base & kSecureBit) != 0 ? address : plain;
    if (at >= entry.base && at - entry.base < entry.size) return &entry;
  }
  return nullptr;
}

void Peripherals::noteUnknown(uint32_t address, bool write) {
  const uint32_t word = address & ~3u;
  if (unknown_.size() >= kMaxUnknown || std::find(unknown_.begin(), unknown_.end(), word) != unknown_.end())
    return;
  unknown_.push_back(word);
  if (tellUnknown_) tellUnknown_(word, write);
}

std::string Peripherals::placeOf(uint32_t address) const {
  if (const Entry* entry = find(address); entry != nullptr && address < kPrivate)
    return fmt::format("{}+0x{:x}", entry->name, (address & ~kSecureBit) - (entry->base & ~kSecureBit));
  return fmt::format("0x{:08x}", address);
}

uint32_t Peripherals::read(uint32_t address, uint32_t size) {
  if (address >= kPrivate && system_.refuses(address, false))
    throw cpu_m::Trap{cpu_m::StopReason::ReadFault, address};
  if (address < kPrivate && gate_ && !gate_(address, false)) return 0;
  return readFreely(address, size);
}

void Peripherals::write(uint32_t address, uint32_t size, uint32_t value) {
  if (address >= kPrivate && system_.refuses(address, true))
    throw cpu_m::Trap{cpu_m::StopReason::WriteFault, address};
  if (address < kPrivate && gate_ && !gate_(address, true)) return;
  writeFreely(address, size, value);
}

uint32_t Peripherals::readFreely(uint32_t address, uint32_t size) {
  uint32_t value = 0;
  if (address >= kPrivate) {
    value = system_.read(address, size);
  } else if (const Entry* entry = find(address)) {
    const uint32_t offset = (address & ~kSecureBit) - (entry->base & ~kSecureBit);
    value = entry->peripheral->read(offset & ~3u) >> 8 * (offset & 3);
    if (size < 4) value &= (1u << 8 * size) - 1;
  } else {
    noteUnknown(address, false);
  }
  if (watch_) watch_(placeOf(address), false, value);
  return value;
}

void Peripherals::writeFreely(uint32_t address, uint32_t size, uint32_t value) {
  if (watch_) watch_(placeOf(address), true, value);
  if (address >= kPrivate) {
    // Disabling something that is absent needs no report.
    if (value != 0 && !SystemSpace::absentPart(address).empty()) noteUnknown(address, true);
    system_.write(address, size, value);
  } else if (const Entry* entry = find(address)) {
    // The buses of these peripherals carry words; a smaller store writes zeros to the other bytes.
    const uint32_t offset = (address & ~kSecureBit) - (entry->base & ~kSecureBit);
    entry->peripheral->write(offset & ~3u, value << 8 * (offset & 3));
  } else {
    noteUnknown(address, true);
  }
}

}  // namespace carina::platform
