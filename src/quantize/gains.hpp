// SPDX-License-Identifier: Apache-2.0
// Normalisations multiply rows by 1 / sqrt(variance + eps). Rows that are nearly constant (silence, padding,
// dead channels) have a huge factor there, 1 / sqrt(eps), and nothing to multiply by it; but with it in the
// range no codes are left for the factors of the other rows.
#pragma once

#include <map>
#include <optional>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// eps, where all values of the group are 1 / sqrt(mean + eps) and only multiply.
std::optional<double> epsOfGain(const Group& group);

/// Whether a row with this factor comes out as good as zero.
bool isIdle(float gain, double eps);

/// The largest factor that is worth codes: the one for which rounding the factors below it and cutting those
/// above costs least in the normalised rows. A row whose factor is r has the variance 1 / r^2 - eps.
class GainObserver final : public Observer {
 public:
  GainObserver(int levels, double eps) : levels_(levels), eps_(eps) {}
  void observe(std::span<const float> values) override;
  Range range() const override;

 private:
  /// Sums over factors of about one size, of variances times powers of the factor.
  struct Bin {
    double rows = 0, first = 0, second = 0;
    float largest = 0;
  };

  double levels_, eps_;
  Range seen_;
  std::map<int, Bin> bins_;  // by logarithm
};

}  // namespace carina::quantize
