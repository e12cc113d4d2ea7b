// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "quantize/observer.hpp"

namespace carina::quantize {

/// The smallest range that contains both.
inline Range unite(const Range& a, const Range& b) {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

}  // namespace carina::quantize
