// SPDX-License-Identifier: Apache-2.0
#include "cpu_m/sau.hpp"

namespace carina::cpu_m {

Sau::Attribution Sau::attribution(uint32_t address) const {
  Attribution result;
  if (isPrivatePeripheral(address)) {
    result.exempt = true;
    return result;
  }
  const bool boardSecure = (secureRegions >> (address >> 28) & 1) != 0;
  const bool boardCallable = boardSecure && (callableRegions >> (address >> 28) & 1) != 0;
  if ((control & kEnable) == 0) {
    if ((control & kAllNonSecure) == 0) return result;
    result.secure = boardSecure;
    result.callable = boardCallable;
    return result;
  }
  bool several = false;
  for (uint8_t i = 0; i < kRegions; ++i) {
    const Region& region = regions[i];
    if (!region.enabled() || region.first() > region.last()) continue;
    if (region.dividesPageOf(address)) result.wholePage = false;
    if (!region.contains(address)) continue;
    several = several || result.region.has_value();
    result.region = i;
  }
  if (several) result.region.reset();
  // Secure if no region or several contain the address; otherwise as the region specifies, unless the board
  // is stricter.
  const bool callable = result.region && (regions[*result.region].limit & 2) != 0;
  const bool nonSecure = result.region && !callable;
  result.secure = !nonSecure || boardSecure;
  result.callable = (callable || nonSecure) && result.secure && (!boardSecure || boardCallable);
  return result;
}

}  // namespace carina::cpu_m
