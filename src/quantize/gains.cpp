// SPDX-License-Identifier: Apache-2.0
#include "quantize/gains.hpp"

#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

constexpr double kBinsPerOctave = 16;
/// Rows whose mean square (or size) is less than this fraction of eps are idle.
constexpr double kIdle = 0x1p-9;

/// The term added to eps: the mean square, or the size.
double besideEps(const Gain& gain, float value) {
  const double r = value;
  return std::max((gain.root ? 1 / (r * r) : 1 / r) - gain.eps, 0.0);
}

}  // namespace

double Gain::energy(float gain) const {
  const double size = besideEps(*this, gain);
  return root ? size : size * size;
}

bool Gain::isIdle(float gain) const {
  return gain > 0 && besideEps(*this, gain) < kIdle * eps;
}

std::optional<Gain> gainOf(const Group& group) {
  if (group.forms.size() != 1 || !group.forms[0].made) return std::nullopt;
  const ir::Value& value = *group.forms[0].value;
  const auto& uses = value.uses();
  const bool root = static_cast<bool>(ir::producerAs<aten::Rsqrt>(&value));
  if ((!root && !ir::producerAs<aten::Reciprocal>(&value)) || value.isGraphOutput() ||
      !std::all_of(uses.begin(), uses.end(),
                   [](const ir::Use& use) { return ir::isa<aten::MulTensor>(use.node); }))
    return std::nullopt;
  const auto shifted = ir::producerAs<aten::AddScalar>(value.producer()->operands()[0]);
  if (!shifted || ir::scalarReal(shifted.alpha()) != 1) return std::nullopt;
  const Gain gain{root, ir::scalarReal(shifted.other())};
  const ir::Value* mean = shifted.self();
  while (mean->producer() && scalingOf(*mean->producer())) mean = mean->producer()->operands()[0];
  if ((root && !ir::producerAs<aten::MeanDim>(mean)) || !(gain.eps > 0)) return std::nullopt;
  return gain;
}

void GainObserver::observe(std::span<const float> values) {
  for (float gain : values) {
    if (!std::isfinite(gain)) continue;
    seen_ = unite(seen_, {gain, gain});
    if (!(gain > 0)) continue;
    Bin& bin = bins_[static_cast<int>(std::floor(std::log2(gain) * kBinsPerOctave))];
    const double energy = gain_.energy(gain), r = gain;
    bin.rows += energy;
    bin.first += energy * r;
    bin.second += energy * r * r;
    bin.largest = std::max(bin.largest, gain);
  }
}

Range GainObserver::range() const {
  Bin above;
  for (const auto& [key, bin] : bins_) {
    above.rows += bin.rows;
    above.first += bin.first;
    above.second += bin.second;
  }
  if (!(above.rows > 0) || !(seen_.min > 0)) return seen_;
  double below = 0, least = 0;
  Range best;
  for (const auto& [key, bin] : bins_) {
    above.rows -= bin.rows;
    above.first -= bin.first;
    above.second -= bin.second;
    below += bin.rows;
    const double end = bin.largest, step = end / (levels_ - 1);
    const double cut = std::max(above.second - 2 * end * above.first + end * end * above.rows, 0.0);
    const double cost = below * step * step / 12 + cut;
    if (!best.empty() && cost >= least) continue;
    least = cost;
    best = {seen_.min, bin.largest};
  }
  return best;
}

}  // namespace carina::quantize
