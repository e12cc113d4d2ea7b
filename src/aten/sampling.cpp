// SPDX-License-Identifier: Apache-2.0
#include "aten/sampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "aten/arguments.hpp"
#include "aten/geometry.hpp"

namespace carina::aten {
namespace {

enum class Mode : uint8_t { Nearest, NearestExact, Linear, Cubic };

Mode modeOf(std::string_view name) {
  if (name.find("nearest_exact") != std::string_view::npos) return Mode::NearestExact;
  if (name.find("nearest") != std::string_view::npos) return Mode::Nearest;
  return name.find("bicubic") != std::string_view::npos ? Mode::Cubic : Mode::Linear;
}

/// Keys' cubic kernel.
float cubic(float x, float a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0f;
}

Taps tapsOf(Mode mode, int64_t o, int64_t size, float scale, bool align) {
  const auto at = static_cast<float>(o);
  if (mode == Mode::Nearest || mode == Mode::NearestExact) {
    const float source = mode == Mode::Nearest ? at * scale : (at + 0.5f) * scale;
    return {{std::min(static_cast<int64_t>(std::floor(source)), size - 1), 1.0f}};
  }
  float source = align ? at * scale : (at + 0.5f) * scale - 0.5f;
  if (mode == Mode::Linear) {
    source = std::max(source, 0.0f);
    const int64_t low = std::min(static_cast<int64_t>(source), size - 1);
    const float fraction = std::clamp(source - static_cast<float>(low), 0.0f, 1.0f);
    return {{low, 1 - fraction}, {low + (low < size - 1 ? 1 : 0), fraction}};
  }
  const float floor = std::floor(source), fraction = source - floor;
  const auto first = static_cast<int64_t>(floor) - 1;
  Taps taps;
  for (int64_t k = 0; k < 4; ++k)
    taps.push_back(
        {std::clamp<int64_t>(first + k, 0, size - 1), cubic(fraction + 1 - static_cast<float>(k), -0.75f)});
  return taps;
}

/// Antialiased: the kernel is stretched by the scale when downsampling, and normalised.
Taps wideTaps(Mode mode, int64_t o, int64_t size, float scale) {
  const float stretch = std::max(scale, 1.0f), support = (mode == Mode::Cubic ? 2.0f : 1.0f) * stretch;
  const float centre = scale * (static_cast<float>(o) + 0.5f);
  const int64_t end = std::min(static_cast<int64_t>(std::trunc(centre + support + 0.5f)), size);
  Taps taps;
  float total = 0;
  for (int64_t i = std::max<int64_t>(static_cast<int64_t>(std::trunc(centre - support + 0.5f)), 0); i < end;
       ++i) {
    const float x = (static_cast<float>(i) - centre + 0.5f) / stretch;
    taps.push_back({i, mode == Mode::Cubic ? cubic(x, -0.5f) : std::max(1 - std::abs(x), 0.0f)});
    total += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= total;
  return taps;
}

}  // namespace

Result<std::vector<std::vector<Taps>>> resizeTaps(const ir::Node& node) {
  CARINA_TRY(const ResizeGeometry g, resizeGeometry(node));
  const std::string_view name = node.opName();
  const Mode mode = modeOf(name);
  const bool wide = name.find("_aa.") != std::string_view::npos;
  std::vector<std::vector<Taps>> taps(g.spatial);
  for (size_t d = 0; d < g.spatial; ++d) {
    const int64_t size = node.operand(0)->shape()[2 + d];
    if (size <= 0) return fail(Code::UnsupportedForm, "an empty tensor cannot be resized");
    for (int64_t o = 0; o < g.output[2 + d]; ++o)
      taps[d].push_back(wide ? wideTaps(mode, o, size, g.scale[d])
                             : tapsOf(mode, o, size, g.scale[d], g.alignCorners));
  }
  return taps;
}

namespace {

enum class Border : int64_t { Zeros = 0, Clamp = 1, Reflection = 2 };
enum class Interpolation : int64_t { Linear = 0, Nearest = 1, Cubic = 2 };

/// A source position mapped into the tensor according to the border mode.
float bordered(float at, int64_t size, Border border, bool align) {
  if (border == Border::Zeros) return at;
  const auto last = static_cast<float>(size - 1);
  if (border == Border::Reflection) {
    const float low = align ? 0.0f : -0.5f, span = align ? last : static_cast<float>(size);
    if (span <= 0) return 0;
    at = std::abs(at - low);
    const float turns = std::floor(at / span), extra = at - turns * span;
    at = std::fmod(turns, 2.0f) == 0 ? extra + low : span - extra + low;
  }
  return std::clamp(at, 0.0f, last);
}

}  // namespace

Taps GridSampling::taps(float g, int64_t size) const {
  const auto border = static_cast<Border>(padding);
  float at = alignCorners ? (g + 1) / 2 * static_cast<float>(size - 1)
                          : ((g + 1) * static_cast<float>(size) - 1) / 2;
  Taps taps;
  // NaN positions and positions outside the tensor contribute no taps.
  const auto add = [&](float where, float weight) {
    if (where >= 0 && where < static_cast<float>(size)) taps.push_back({static_cast<int64_t>(where), weight});
  };
  if (static_cast<Interpolation>(interpolation) == Interpolation::Cubic) {
    // Border handling applies to the elements that are read, not to the position between them.
    const float floor = std::floor(at), fraction = at - floor;
    for (int k = 0; k < 4; ++k) {
      const float shift = static_cast<float>(k) - 1;
      add(bordered(floor + shift, size, border, alignCorners), cubic(fraction - shift, -0.75f));
    }
    return taps;
  }
  at = bordered(at, size, border, alignCorners);
  if (static_cast<Interpolation>(interpolation) == Interpolation::Nearest) {
    add(std::nearbyint(at), 1);
  } else {
    const float floor = std::floor(at), fraction = at - floor;
    add(floor, 1 - fraction);
    add(floor + 1, fraction);
  }
  return taps;
}

Result<GridSampling> gridSampling(const ir::Node& node) {
  const Arguments a(node);
  GridSampling sampling{a.integer("interpolation_mode"), a.integer("padding_mode"),
                        a.boolean("align_corners")};
  if (sampling.padding < 0 || sampling.padding > 2)
    return fail(Code::UnsupportedForm, "padding mode {} is not known", sampling.padding);
  const bool cubic = sampling.interpolation == 2;
  if (sampling.interpolation < 0 || sampling.interpolation > 2 || (cubic && node.operand(0)->rank() != 4))
    return fail(Code::UnsupportedForm, "interpolation mode {} is not defined for a tensor of rank {}",
                sampling.interpolation, node.operand(0)->rank());
  return sampling;
}

std::vector<float> affineBase(const Shape& spatial, bool alignCorners) {
  std::vector<float> base;
  Shape at(spatial.size(), 0);
  for (int64_t i = 0; i < numElements(spatial); ++i) {
    for (size_t d = spatial.size(); d-- > 0;) {
      const auto size = static_cast<float>(spatial[d]), o = static_cast<float>(at[d]);
      base.push_back(spatial[d] == 1 ? 0.0f : alignCorners ? 2 * o / (size - 1) - 1 : (2 * o + 1) / size - 1);
    }
    base.push_back(1);
    for (size_t d = spatial.size(); d-- > 0;) {
      if (++at[d] < spatial[d]) break;
      at[d] = 0;
    }
  }
  return base;
}

}  // namespace carina::aten
