// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "packing/packing.hpp"

namespace carina {

/// Whether buffers that are live at the same time have separate, aligned places below the packing's end.
inline bool isSound(const std::vector<LiveRange>& ranges, const Packing& packing) {
  bool sound = packing.bytes >= packingLowerBound(ranges);
  for (size_t i = 0; i < ranges.size(); ++i) {
    sound = sound && packing.addresses[i] >= 0 && packing.addresses[i] % 16 == 0;
    sound = sound && packing.addresses[i] + ranges[i].bytes <= packing.bytes;
    for (size_t j = 0; j < i; ++j) {
      if (!ranges[i].overlaps(ranges[j])) continue;
      sound = sound && (packing.addresses[i] + ranges[i].bytes <= packing.addresses[j] ||
                        packing.addresses[j] + ranges[j].bytes <= packing.addresses[i]);
    }
  }
  return sound;
}

}  // namespace carina
