// SPDX-License-Identifier: Apache-2.0
#include "ethosn/lower/curve_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace carina::ethosn {
namespace {

constexpr int32_t kLow = -128, kHigh = 127;

bool rises(std::span<const int32_t, 256> table) {
  return std::is_sorted(table.begin(), table.end()) && table.front() < table.back();
}

/// The slopes of lines through (0, 0) that, rounded, yield the results on one side of a zero point.
struct Slopes {
  double rounding = 0.5;  // by which rounding may have moved results
  double least = 0, most = std::numeric_limits<double>::infinity();
  void add(int32_t distance, int32_t change, bool saturatedLow, bool saturatedHigh) {
    // change - rounding <= slope * distance <= change + rounding, where distance may be negative: the table
    // may have been computed with halves rounded either way.
    const double low = (change - rounding) / distance, high = (change + rounding) / distance;
    const bool noLower = distance > 0 ? saturatedLow : saturatedHigh,
               noUpper = distance > 0 ? saturatedHigh : saturatedLow;
    if (!noLower) least = std::max(least, std::min(low, high));
    if (!noUpper) most = std::min(most, std::max(low, high));
  }
  bool some() const { return least < most && std::isfinite(most); }
  double middle() const { return (least + most) / 2; }
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// How well A * sigmoid(scale * (x - zeroPoint)) + B fits with the best A and B; results at the ends of the
/// range are ignored.
struct Fit {
  double error = std::numeric_limits<double>::infinity();
  double a = 0, b = 0;
};

/// `curve(x)`: the function at code x; it subtracts the zero point itself.
template <typename Curve>
Fit fitOf(std::span<const int32_t, 256> table, const Curve& curve) {
  double n = 0, su = 0, suu = 0, st = 0, sut = 0, stt = 0;
  for (int32_t i = 0; i < 256; ++i) {
    const double t = table[static_cast<size_t>(i)];
    if (t <= kLow || t >= kHigh) continue;
    const double u = curve(i + kLow);
    n += 1;
    su += u;
    suu += u * u;
    st += t;
    sut += u * t;
    stt += t * t;
  }
  Fit fit;
  const double determinant = n * suu - su * su;
  if (n < 8 || determinant < 1e-9) return fit;
  fit.a = (n * sut - su * st) / determinant;
  fit.b = (st - fit.a * su) / n;
  fit.error = (stt - fit.a * sut - fit.b * st) / n;
  return fit;
}

Fit fitAt(std::span<const int32_t, 256> table, int32_t zeroPoint, double scale) {
  return fitOf(table, [&](int32_t x) { return sigmoid(scale * (x - zeroPoint)); });
}

/// The sigmoid at all differences of two codes, for the fits with every zero point.
class SigmoidValues {
 public:
  explicit SigmoidValues(double scale) {
    for (int32_t distance = -kFurthest; distance <= kFurthest; ++distance)
      values_[static_cast<size_t>(distance + kFurthest)] = sigmoid(scale * distance);
  }
  Fit fit(std::span<const int32_t, 256> table, int32_t zeroPoint) const {
    return fitOf(table, [&](int32_t x) { return values_[static_cast<size_t>(x - zeroPoint + kFurthest)]; });
  }

 private:
  static constexpr int32_t kFurthest = kHigh - kLow;
  std::array<double, 2 * kFurthest + 1> values_{};
};

/// The curve as the hardware computes it: codes of the PLE, then a requantization.
int32_t computed(const SmoothCurve& curve, int32_t x) {
  const double at = curve.scale * (x - curve.zeroPoint);
  const double native =
      curve.tanh ? std::nearbyint(128 * std::tanh(at)) : std::nearbyint(256 * sigmoid(at)) - 128;
  const double code = std::clamp<double>(native, kLow, kHigh);
  const double moved = (code - (curve.tanh ? 0 : kLow)) * curve.ratio + curve.outputZeroPoint;
  return static_cast<int32_t>(std::clamp<double>(std::floor(moved + 0.5), kLow, kHigh));
}

bool within(const SmoothCurve& curve, std::span<const int32_t, 256> table, int32_t tolerance) {
  for (int32_t i = 0; i < 256; ++i) {
    if (std::abs(computed(curve, i + kLow) - table[static_cast<size_t>(i)]) > tolerance) return false;
  }
  return true;
}

/// The same function by the PLE's sigmoid or tanh, whichever has its zero point among the codes.
std::optional<SmoothCurve> curveOf(const Fit& fit, int32_t zeroPoint, double scale,
                                   std::span<const int32_t, 256> table) {
  for (bool tanh : {false, true}) {
    const double zero = tanh ? fit.b + fit.a / 2 : fit.b;
    if (zero < kLow - 0.5 || zero > kHigh + 0.5) continue;
    const SmoothCurve curve{tanh, zeroPoint, std::clamp(static_cast<int32_t>(std::lround(zero)), kLow, kHigh),
                            tanh ? scale / 2 : scale, fit.a / 256};
    if (within(curve, table, 1)) return curve;
  }
  return std::nullopt;
}

std::optional<LeakyCurve> fitLeakyRounded(std::span<const int32_t, 256> table, double rounding) {
  std::optional<LeakyCurve> best;
  double widest = 0;
  for (int32_t zero = kLow; zero <= kHigh; ++zero) {
    const int32_t at = table[static_cast<size_t>(zero - kLow)];
    if (at <= kLow || at >= kHigh) continue;
    Slopes above{rounding}, below{rounding};
    for (int32_t x = kLow; x <= kHigh; ++x) {
      const int32_t result = table[static_cast<size_t>(x - kLow)];
      if (x != zero) (x > zero ? above : below).add(x - zero, result - at, result == kLow, result == kHigh);
    }
    if (!above.some() || !below.some()) continue;
    const double alpha = below.middle() / above.middle();
    const double width = std::min(above.most - above.least, below.most - below.least);
    if (alpha <= 0 || static_cast<float>(alpha) >= 1 || (best && width <= widest)) continue;
    widest = width;
    best = LeakyCurve{zero, at, above.middle(), alpha};
  }
  return best;
}

}  // namespace

std::optional<LeakyCurve> fitLeaky(std::span<const int32_t, 256> table) {
  if (!rises(table)) return std::nullopt;
  // TensorFlow Lite's kernels first round to half codes, at the coarsest.
  constexpr double kOnce = 0.5 + 1e-4, kTwice = 0.75 + 1e-4;
  const auto once = fitLeakyRounded(table, kOnce);
  return once ? once : fitLeakyRounded(table, kTwice);
}

std::optional<ClampedLine> fitClampedLine(std::span<const int32_t, 256> table) {
  ClampedLine line;
  const auto [least, most] = std::minmax_element(table.begin(), table.end());
  line.low = *least;
  line.high = *most;
  double n = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (int32_t x = kLow; x <= kHigh; ++x) {
    const double y = table[static_cast<size_t>(x - kLow)];
    if (y <= line.low || y >= line.high) continue;
    n += 1;
    sx += x;
    sxx += static_cast<double>(x) * x;
    sy += y;
    sxy += x * y;
  }
  const double determinant = n * sxx - sx * sx;
  if (line.low == line.high) {
    line.slope = 1;  // its values are clamped to the one result
  } else if (n >= 3 && determinant > 0) {
    line.slope = (n * sxy - sx * sy) / determinant;
    line.offset = (sy - line.slope * sx) / n;
  } else {
    // A step: from the last code at one end to the first at the other.
    const bool falls = table.front() > table.back();
    const auto before = std::count(table.begin(), table.end(), falls ? line.high : line.low);
    const auto behind = 255 - std::count(table.begin(), table.end(), falls ? line.low : line.high);
    line.slope = (line.high - line.low) / static_cast<double>(behind + 2 - before) * (falls ? -1 : 1);
    line.offset = (falls ? line.high : line.low) - line.slope * (static_cast<double>(before) - 1 + kLow);
  }
  for (int32_t x = kLow; x <= kHigh; ++x) {
    const double y = std::clamp<double>(std::floor(line.slope * x + line.offset + 0.5), line.low, line.high);
    if (std::abs(y - table[static_cast<size_t>(x - kLow)]) > 1) return std::nullopt;
  }
  return line;
}

std::optional<SmoothCurve> fitSmooth(std::span<const int32_t, 256> table) {
  if (!rises(table)) return std::nullopt;
  constexpr double kStep = 1.25, kFirst = 1.0 / 2048, kLast = 1;
  struct Candidate {
    double error, scale;
    int32_t zeroPoint;
  };
  std::vector<std::pair<double, SigmoidValues>> scales;
  for (double scale = kFirst; scale < kLast; scale *= kStep) scales.emplace_back(scale, SigmoidValues(scale));
  std::vector<Candidate> candidates;
  for (int32_t zero = kLow; zero <= kHigh; ++zero) {
    for (const auto& [scale, values] : scales) {
      const Fit fit = values.fit(table, zero);
      if (fit.a > 0 && std::isfinite(fit.error)) candidates.push_back({fit.error, scale, zero});
    }
  }
  constexpr size_t kTried = 24;
  const size_t tried = std::min(kTried, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(tried),
                    candidates.end(),
                    [](const Candidate& a, const Candidate& b) { return a.error < b.error; });
  std::optional<SmoothCurve> best;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < tried; ++i) {
    // Golden-section search between the neighbours of the scale.
    double low = candidates[i].scale / kStep, high = candidates[i].scale * kStep;
    for (int turn = 0; turn < 40; ++turn) {
      const double left = high - (high - low) / std::numbers::phi,
                   right = low + (high - low) / std::numbers::phi;
      const bool goLeft = fitAt(table, candidates[i].zeroPoint, left).error <
                          fitAt(table, candidates[i].zeroPoint, right).error;
      (goLeft ? high : low) = goLeft ? right : left;
    }
    const double scale = (low + high) / 2;
    const Fit fit = fitAt(table, candidates[i].zeroPoint, scale);
    if (fit.error >= least || fit.a <= 0) continue;
    const auto curve = curveOf(fit, candidates[i].zeroPoint, scale, table);
    if (!curve) continue;
    least = fit.error;
    best = curve;
  }
  return best;
}

double GatedLine::gateAt(int32_t code) const {
  const double at = gate * (code - zeroPoint);
  return smooth ? sigmoid(at) : std::clamp(at + 0.5, 0.0, 1.0);
}

namespace {

/// The ratio that fits best, and the remaining sum of squares; results at the ends of the range are ignored.
double fitRatio(std::span<const int32_t, 256> table, GatedLine& line) {
  double uu = 0, ut = 0, tt = 0;
  for (int32_t x = kLow; x <= kHigh; ++x) {
    const int32_t result = table[static_cast<size_t>(x - kLow)];
    if (result <= kLow || result >= kHigh) continue;
    const double u = (x - line.zeroPoint) * line.gateAt(x), t = result - line.outputZeroPoint;
    uu += u * u;
    ut += u * t;
    tt += t * t;
  }
  if (uu <= 0) return std::numeric_limits<double>::infinity();
  line.ratio = ut / uu;
  return tt - line.ratio * ut;
}

bool within(const GatedLine& line, std::span<const int32_t, 256> table) {
  for (int32_t x = kLow; x <= kHigh; ++x) {
    const double y = line.ratio * (x - line.zeroPoint) * line.gateAt(x) + line.outputZeroPoint;
    const double code = std::clamp<double>(std::floor(y + 0.5), kLow, kHigh);
    if (std::abs(code - table[static_cast<size_t>(x - kLow)]) > 1) return false;
  }
  return true;
}

}  // namespace

std::optional<GatedLine> fitGated(std::span<const int32_t, 256> table) {
  constexpr double kStep = 1.25, kFirst = 1.0 / 2048, kLast = 1;
  constexpr size_t kTried = 12;
  for (bool smooth : {false, true}) {
    std::vector<std::pair<double, GatedLine>> candidates;  // by remaining error
    for (int32_t zero = kLow; zero <= kHigh; ++zero) {
      const int32_t at = table[static_cast<size_t>(zero - kLow)];
      if (at <= kLow || at >= kHigh) continue;
      for (double gate = kFirst; gate < kLast; gate *= kStep) {
        GatedLine line{smooth, zero, at, gate, 1};
        const double error = fitRatio(table, line);
        if (std::isfinite(error) && line.ratio > 0) candidates.emplace_back(error, line);
      }
    }
    const size_t tried = std::min(kTried, candidates.size());
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(tried),
                      candidates.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < tried; ++i) {
      // Golden-section search between the neighbours of the gate's slope.
      GatedLine line = candidates[i].second;
      double low = line.gate / kStep, high = line.gate * kStep;
      for (int turn = 0; turn < 40; ++turn) {
        GatedLine left = line, right = line;
        left.gate = high - (high - low) / std::numbers::phi;
        right.gate = low + (high - low) / std::numbers::phi;
        const bool goLeft = fitRatio(table, left) < fitRatio(table, right);
        (goLeft ? high : low) = goLeft ? right.gate : left.gate;
      }
      line.gate = (low + high) / 2;
      fitRatio(table, line);
      if (within(line, table)) return line;
    }
  }
  return std::nullopt;
}

}  // namespace carina::ethosn
