// SPDX-License-Identifier: Apache-2.0
#include "quantize/sqnr.hpp"

#include <cmath>
#include <limits>

namespace carina::quantize {

void Sqnr::add(const Tensor& reference, const Tensor& actual) {
  for (int64_t i = 0; i < reference.numElements(); ++i) {
    const double want = reference.realAt(i);
    if (!std::isfinite(want)) continue;
    const double error = actual.realAt(i) - want;
    signal += want * want;
    noise += error * error;
  }
}

double Sqnr::decibels() const {
  if (signal == 0 && noise == 0) return std::numeric_limits<double>::quiet_NaN();
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

}  // namespace carina::quantize
