// SPDX-License-Identifier: Apache-2.0
#include "decompose/resize_axes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aten/geometry.hpp"
#include "aten/ops.hpp"
#include "aten/sampling.hpp"

namespace carina::decompose {
namespace {

enum class Positions : uint8_t { Nearest, NearestExact, Bilinear, AlignedBilinear };

// Positions within this distance of PyTorch's, in rows, count as equal: PyTorch's own are rounded to float32.
constexpr double kSamePosition = 1.0 / 4096;
constexpr int64_t kMaxNumerator = 2048, kMaxSize = 16384;

/// Input rows per output row.
struct Fraction {
  int64_t rows, outputs;
  double value() const { return static_cast<double>(rows) / static_cast<double>(outputs); }
};

/// The fraction given by the sizes, then increasingly close ones to the factor that PyTorch computes with
/// (the convergents of its continued fraction).
std::vector<Fraction> fractions(Positions mode, int64_t inputs, int64_t outputs, double scale) {
  const int64_t less = mode == Positions::AlignedBilinear ? 1 : 0;
  if (outputs == less) return {{1, 1}};  // one aligned row: the first
  const int64_t g = std::gcd(inputs - less, outputs - less);
  std::vector<Fraction> result{{(inputs - less) / g, (outputs - less) / g}};
  Fraction last{0, 1}, now{1, 0};
  for (double rest = scale; std::isfinite(rest) && rest < 1e6;) {
    const auto whole = static_cast<int64_t>(std::floor(rest));
    const Fraction next{whole * now.rows + last.rows, whole * now.outputs + last.outputs};
    if (next.outputs > kMaxNumerator) break;
    last = now;
    now = next;
    if (now.rows > 0) result.push_back(now);
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return result;
}

ResizeAxis axisOf(Positions mode, Fraction f, int64_t inputs, int64_t outputs) {
  ResizeAxis axis{2 * f.outputs, 2 * f.rows, 0, 0};
  switch (mode) {
    case Positions::Nearest:  // floor(o * scale): half a row less than rounding
      axis.offset = -f.outputs;
      break;
    case Positions::NearestExact:  // floor((o + 1/2) * scale)
    case Positions::Bilinear:      // (o + 1/2) * scale - 1/2
      axis.offset = f.rows - f.outputs;
      break;
    case Positions::AlignedBilinear:  // o * scale
      break;
  }
  if (axis.offset % 2 == 0) {
    axis.numerator /= 2;
    axis.denominator /= 2;
    axis.offset /= 2;
  }
  axis.border = (outputs - 1) * axis.denominator - (inputs - 1) * axis.numerator + axis.offset;
  return axis;
}

bool inRange(const ResizeAxis& a) {
  return a.numerator <= kMaxNumerator && a.denominator < 16 * a.numerator && a.offset >= -a.numerator &&
         a.offset < 16 * a.numerator && a.border >= -16 * a.numerator && a.border < a.numerator;
}

/// The row that RESIZE reads for nearest output o.
int64_t rowOf(const ResizeAxis& axis, int64_t o, int64_t inputs) {
  const int64_t twice = 2 * (o * axis.denominator + axis.offset) + axis.numerator;
  return std::clamp<int64_t>(twice < 0 ? 0 : twice / (2 * axis.numerator), 0, inputs - 1);
}

bool readsTheSame(Positions mode, const ResizeAxis& axis, Fraction f, int64_t inputs,
                  const std::vector<aten::Taps>& taps, double scale) {
  if (mode == Positions::AlignedBilinear && taps.size() == 1) return true;  // the first row
  if (mode == Positions::Bilinear || mode == Positions::AlignedBilinear)
    return std::abs(f.value() - scale) * static_cast<double>(taps.size()) < kSamePosition;
  for (size_t o = 0; o < taps.size(); ++o) {
    if (rowOf(axis, static_cast<int64_t>(o), inputs) != taps[o][0].at) return false;
  }
  return true;
}

}  // namespace

Result<std::array<ResizeAxis, 2>> resizeAxes(const ir::Node& node) {
  CARINA_TRY(const aten::ResizeGeometry geometry, aten::resizeGeometry(node));
  CARINA_TRY(const auto taps, aten::resizeTaps(node));
  const Positions mode = ir::isa<aten::UpsampleNearest2dVec>(&node)               ? Positions::Nearest
                         : ir::isa<aten::PrivateUpsampleNearestExact2dVec>(&node) ? Positions::NearestExact
                         : geometry.alignCorners                                  ? Positions::AlignedBilinear
                                                                                  : Positions::Bilinear;
  std::array<ResizeAxis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t inputs = node.operands()[0]->dim(static_cast<int64_t>(i) + 2);
    const auto outputs = static_cast<int64_t>(taps[i].size());
    const double scale = static_cast<double>(geometry.scale[i]);
    bool found = inputs == 1 || (inputs == outputs && std::abs(scale - 1) < 1e-6);
    if (found) continue;
    if (inputs >= kMaxSize || outputs >= kMaxSize)
      return fail(Code::HardwareLimit, "resizing {} rows to {}: RESIZE supports fewer than {}", inputs,
                  outputs, kMaxSize);
    for (const Fraction& f : fractions(mode, inputs, outputs, scale)) {
      const ResizeAxis axis = axisOf(mode, f, inputs, outputs);
      found = inRange(axis) && readsTheSame(mode, axis, f, inputs, taps[i], scale);
      if (!found) continue;
      axes[i] = axis;
      break;
    }
    if (!found)
      return fail(Code::HardwareLimit, "resizing {} rows to {} by {} has no ratio in RESIZE's range", inputs,
                  outputs, 1 / scale)
          .withRemedy("resize in two steps, or by a simpler ratio");
  }
  return axes;
}

}  // namespace carina::decompose
