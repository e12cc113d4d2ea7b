// SPDX-License-Identifier: Apache-2.0
// Normalisations multiply rows by 1 / sqrt(variance + eps) or divide by sum + eps. Rows that are nearly
// constant (silence, padding, dead channels) have a huge factor there, 1 / sqrt(eps) or 1 / eps, and nothing
// to multiply by it; but with it in the range no codes are left for the factors of the other rows.
#pragma once

#include <map>
#include <optional>

#include "quantize/annotate.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

struct Gain {
  bool root = true;  // 1 / sqrt(mean of squares + eps), else 1 / (size + eps)
  double eps = 0;

  /// Mean square of the row that has this factor.
  double energy(float gain) const;
  /// Whether the row comes out as good as zero.
  bool isIdle(float gain) const;
};

/// What the values of the group are, where all of them are such factors and only multiply.
std::optional<Gain> gainOf(const Group& group);

/// The largest factor that is worth codes: the one for which rounding the factors below it and cutting those
/// above costs least in the normalised rows. Where there are negative factors, all that was seen.
class GainObserver final : public Observer {
 public:
  GainObserver(int levels, const Gain& gain) : levels_(levels), gain_(gain) {}
  void observe(std::span<const float> values) override;
  Range range() const override;

 private:
  /// Sums over factors of about one size, of energies times powers of the factor.
  struct Bin {
    double rows = 0, first = 0, second = 0;
    float largest = 0;
  };

  double levels_;
  Gain gain_;
  Range seen_;
  std::map<int, Bin> bins_;  // by logarithm
};

}  // namespace carina::quantize
