// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/memory.hpp"

#include <algorithm>

namespace carina::cpu_m {

void Memory::mapRam(uint32_t address, uint64_t size, uint8_t* host) {
  regions_.push_back({address, address + size, host});
  forgetPages();
}

void Memory::mapDevices(uint32_t address, uint64_t size) {
  regions_.push_back({address, address + size, nullptr});
  forgetPages();
}

void Memory::forgetPages() {
  for (Table& table : tables_) {
    table.reads.fill({kNoPage, nullptr});
    table.writes.fill({kNoPage, nullptr});
  }
}

void Memory::forgetCode() {
  code_.clear();
}

const Memory::Region* Memory::find(uint32_t address) const {
  for (size_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[lastRegion_];
    if (address >= region.begin && address < region.end) return &region;
    lastRegion_ = (lastRegion_ + 1) % regions_.size();
  }
  return nullptr;
}

uint16_t Memory::fetch(uint32_t address) {
  const Permission permission = protection_.permission(address, context_, true);
  if (permission.foreign)
    throw Trap{permission.secure ? StopReason::SecureEntry : StopReason::SecureExit, address};
  if (!permission.execute) throw Trap{StopReason::FetchViolation, address};
  const Region* region = find(address);
  if (region == nullptr || region->host == nullptr) throw Trap{StopReason::FetchFault, address};
  if (permission.gated) {
    try {
      gates_->refuse(address, false, permission.secure);
    } catch (const Trap&) {
      throw Trap{StopReason::FetchFault, address};
    }
    return 0;
  }
  const uint8_t* at = region->host + (address - region->begin);
  const uint32_t offset = address & (kPageSize - 1);
  const auto [map, isNew] = code_.try_emplace(at - offset);
  map->second.set(offset / 2);
  if (isNew) {  // stores to this page take the slow path from now on
    for (Table& table : tables_) table.writes.fill({kNoPage, nullptr});
  }
  uint16_t halfword = 0;
  std::memcpy(&halfword, at, sizeof halfword);
  return halfword;
}

Permission Memory::dataPermission(uint32_t address) const {
  const Permission permission = protection_.permission(address, context_, false);
  if (permission.foreign) throw Trap{StopReason::SecureData, address};
  return permission;
}

bool Memory::peek(uint32_t address, std::span<uint8_t> bytes) const {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t at = address + static_cast<uint32_t>(i);
    const Region* region = find(at);
    if (region == nullptr || region->host == nullptr) return false;
    bytes[i] = region->host[at - region->begin];
  }
  return true;
}

uint32_t Memory::loadSlowly(uint32_t address, uint32_t size, bool split) {
  if (split && (address & (size - 1)) != 0) {
    if (unalignedTraps_[context_]) throw Trap{StopReason::Unaligned, address};
    if (waits(address)) listener_.accessWaits(address, false);
    uint32_t value = 0;
    for (uint32_t i = 0; i < size; ++i) value |= loadSlowly(address + i, 1, false) << 8 * i;
    return value;
  }
  const Region* region = find(address);
  const Permission permission = dataPermission(address);
  if (!permission.read) throw Trap{StopReason::DataViolation, address};
  if (region == nullptr) throw Trap{StopReason::ReadFault, address};
  if (watching()) noteAccess(address, size, false);
  if (region->host == nullptr) {
    // A byte of an unaligned access, which devices do not support.
    if (!split) throw Trap{StopReason::Unaligned, address};
    const uint32_t value = devices_->read(address, size);
    if (observer_ != nullptr) observer_->accessed(address, size, value, false);
    if (devices_->stopWanted()) listener_.deviceWantsStop();
    return value;
  }
  if (permission.gated) {
    gates_->refuse(address, false, permission.secure);
    return 0;
  }
  if (split && waits(address)) listener_.accessWaits(address, false);
  const uint32_t page = address >> kPageBits;
  uint8_t* at = region->host + (address - region->begin);
  if (permission.wholePage && fast(page))
    table_->reads[index(address)] = {page, at - (address & (kPageSize - 1))};
  uint32_t value = 0;
  std::memcpy(&value, at, size);
  if (observer_ != nullptr) observer_->accessed(address, size, value, false);
  return value;
}

void Memory::storeSlowly(uint32_t address, uint32_t size, uint32_t value, bool split) {
  if (split && (address & (size - 1)) != 0) {
    if (unalignedTraps_[context_]) throw Trap{StopReason::Unaligned, address};
    // Both pages must be accessible before the first byte changes.
    const uint32_t last = address + size - 1;
    for (const uint32_t end : {address, last}) {
      if (!dataPermission(end).write) throw Trap{StopReason::DataViolation, end};
    }
    const Region *first = find(address), *second = find(last);
    if (first == nullptr) throw Trap{StopReason::WriteFault, address};
    if (second == nullptr) throw Trap{StopReason::WriteFault, last};
    if (first->host == nullptr || second->host == nullptr) throw Trap{StopReason::Unaligned, address};
    for (uint32_t i = 0; i < size; ++i) storeSlowly(address + i, 1, value >> 8 * i & 0xff, false);
    return;
  }
  const Region* region = find(address);
  const Permission permission = dataPermission(address);
  if (!permission.write) throw Trap{StopReason::DataViolation, address};
  if (region == nullptr) throw Trap{StopReason::WriteFault, address};
  if (watching()) noteAccess(address, size, true);
  if (observer_ != nullptr) observer_->accessed(address, size, value, true);
  if (region->host == nullptr) {
    devices_->write(address, size, value);
    if (devices_->stopWanted()) listener_.deviceWantsStop();
    return;
  }
  if (permission.gated) {
    gates_->refuse(address, true, permission.secure);
    return;
  }
  if (waits(address)) listener_.accessWaits(address, true);
  const uint32_t page = address >> kPageBits, offset = address & (kPageSize - 1);
  uint8_t* at = region->host + (address - region->begin);
  std::memcpy(at, &value, size);
  if (const auto map = code_.find(at - offset); map != code_.end()) {
    if (map->second[offset / 2] || map->second[(offset + size - 1) / 2]) listener_.codeWritten();
  } else if (permission.wholePage && fast(page)) {
    table_->writes[index(address)] = {page, at - offset};
  }
}

void Memory::watch(std::span<const WatchedRange> ranges) {
  watched_.assign(ranges.begin(), ranges.end());
  hit_ = false;
  forgetPages();
}

bool Memory::watchedPage(uint32_t page) const {
  return std::any_of(watched_.begin(), watched_.end(), [&](const WatchedRange& range) {
    return page >= range.address >> kPageBits && page <= (range.address + (range.size - 1)) >> kPageBits;
  });
}

void Memory::noteAccess(uint32_t address, uint32_t size, bool write) {
  for (const WatchedRange& range : watched_) {
    if (hit_ || !(write ? range.writes : range.reads)) continue;
    if (address > range.address + (range.size - 1) || address + (size - 1) < range.address) continue;
    hit_ = true;
    hitStop_ = {StopReason::Watchpoint, std::max(address, range.address), write ? kWatchWrites : kWatchReads};
  }
}

bool Memory::takeWatchHit(Stop* stop) {
  if (!hit_) return false;
  hit_ = false;
  *stop = hitStop_;
  return true;
}

}  // namespace carina::cpu_m
