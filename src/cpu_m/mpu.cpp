// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/mpu.hpp"

namespace carina::cpu_m {
namespace {

/// The default map: device regions and everything above external memory are not executable.
bool defaultExecutable(uint32_t address) {
  return address < 0x40000000 || (address >= 0x60000000 && address < 0xa0000000);
}

}  // namespace

std::optional<uint8_t> Mpu::regionOf(uint32_t address) const {
  std::optional<uint8_t> found;
  for (uint8_t i = 0; i < kRegions; ++i) {
    const Region& region = regions[i];
    if (!region.enabled() || !region.contains(address)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

Permission Mpu::permission(uint32_t address, bool privileged, bool negativePriority) const {
  Permission result;
  result.execute = defaultExecutable(address);
  if (isPrivatePeripheral(address)) return result;
  if (!enabled() || (negativePriority && (control & kDuringFaults) == 0)) return result;

  const Region* hit = nullptr;
  bool several = false;
  for (const Region& region : regions) {
    if (!region.enabled() || region.first() > region.last()) continue;
    if (region.dividesPageOf(address)) result.wholePage = false;
    if (!region.contains(address)) continue;
    several = hit != nullptr;
    if (several) break;
    hit = &region;
  }
  if (several || (hit == nullptr && !(privileged && (control & kPrivilegedDefault) != 0))) {
    result.read = result.write = result.execute = false;
    return result;
  }
  if (hit == nullptr) return result;
  const bool readOnly = (hit->base & 4) != 0, everybody = (hit->base & 2) != 0;
  result.read = privileged || everybody;
  result.write = result.read && !readOnly;
  const bool never = (hit->base & 1) != 0 || (privileged && (hit->limit & 1u << 4) != 0);
  result.execute = result.read && !never && result.execute;
  return result;
}

}  // namespace carina::cpu_m
