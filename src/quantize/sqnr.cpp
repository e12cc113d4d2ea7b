// SPDX-License-Identifier: Apache-2.0
#include "quantize/sqnr.hpp"

#include <cmath>
#include <limits>

#include "quantize/hidden_values.hpp"

namespace carina::quantize {

void Sqnr::add(const Tensor& reference, const Tensor& actual) {
  const auto addAll = [&](auto wanted, auto found) {
    for (int64_t i = 0; i < reference.numElements(); ++i) {
      const double want = wanted(i);
      if (std::isfinite(want) && !isHidden(want)) add(want, found(i));
    }
  };
  if (reference.dtype() == DType::Float32 && actual.dtype() == DType::Float32) {
    const float *wanted = reference.as<float>().data(), *found = actual.as<float>().data();
    addAll([&](int64_t i) { return static_cast<double>(wanted[i]); },
           [&](int64_t i) { return static_cast<double>(found[i]); });
  } else {
    addAll([&](int64_t i) { return reference.realAt(i); }, [&](int64_t i) { return actual.realAt(i); });
  }
}

double Sqnr::decibels() const {
  if (signal == 0 && noise == 0) return std::numeric_limits<double>::quiet_NaN();
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

}  // namespace carina::quantize
