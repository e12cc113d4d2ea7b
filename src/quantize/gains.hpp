// SPDX-License-Identifier: Apache-2.0
// Normalisations multiply rows by 1 / sqrt(variance + eps) or divide by sum + eps. For nearly constant rows
// (silence, padding, dead channels) this factor is huge, 1 / sqrt(eps) or 1 / eps, but has nothing to
// multiply; a range that includes it leaves no codes for the factors of the other rows.
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
  /// Whether the normalised row is practically zero.
  bool isIdle(float gain) const;
};

/// The kind of factor, if the group's only value is such a factor and is only used in multiplications.
std::optional<Gain> gainOf(const Group& group);

/// The range up to the factor for which rounding the factors below it and clipping those above it costs least
/// in the normalised rows. With factors that are not positive, the whole range that was seen.
class GainObserver final : public Observer {
 public:
  GainObserver(int levels, const Gain& gain) : levels_(levels), gain_(gain) {}
  void observe(std::span<const float> values) override;
  Range range() const override;

 private:
  /// Sums over factors of similar magnitude, of energies times powers of the factor.
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
