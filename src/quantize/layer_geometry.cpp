// SPDX-License-Identifier: Apache-2.0
#include "quantize/layer_geometry.hpp"

#include <algorithm>
#include <numeric>

#include "aten/conv_op.hpp"
#include "base/parallel.hpp"
#include "quantize/fit_kernels.hpp"

namespace carina::quantize {
namespace {

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// Input indices of one dimension: first, first + step, ...
struct Progression {
  int64_t first = 0, step = 1, count = 0;
};

/// The input indices that a tap multiplies, over all outputs: output * stride + shift is an input; in a
/// transposed layer, input * stride + shift is an output.
Progression seenByTap(const LayerGeometry& g, size_t d, int64_t tap) {
  const int64_t from = g.transposed ? g.input[d] : g.output[d], to = g.transposed ? g.output[d] : g.input[d];
  const int64_t stride = g.stride[d], shift = tap * g.dilation[d] - g.pad[d];
  const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
  const int64_t end = shift < to ? std::min(from, (to - shift + stride - 1) / stride) : 0;
  const int64_t count = end - first;
  if (count <= 0) return {};
  return g.transposed ? Progression{first, 1, count} : Progression{first * stride + shift, stride, count};
}

/// Channels summed in parallel: additions within one channel depend on each other.
constexpr size_t kSideBySide = 8;

/// Values of some channels, or sums of them: those of channel c begin at data + c * stride.
struct Planes {
  const float* data;
  size_t count, stride, size;  // size: values per channel
};

/// Adds to sums, per channel, the values that one tap of the innermost dimension multiplies.
template <size_t kCount>
void addInnermost(const Progression& seen, const Planes& planes, size_t channel, float* sums, size_t taps) {
  const float* from = planes.data + channel * planes.stride + seen.first;
  float sum[kCount] = {};
  for (int64_t k = 0; k < seen.count; ++k) {
    for (size_t c = 0; c < kCount; ++c)
      sum[c] += from[c * planes.stride + static_cast<size_t>(k * seen.step)];
  }
  for (size_t c = 0; c < kCount; ++c) sums[(channel + c) * taps] += sum[c];
}

/// Adds to sums, [channel, tap], the values that each tap of the dimensions from d on multiplies.
void addTapSums(const LayerGeometry& g, size_t d, const Planes& planes, float* sums) {
  const auto taps = static_cast<size_t>(g.taps);
  if (d + 1 == g.kernel.size()) {
    for (int64_t tap = 0; tap < g.kernel[d]; ++tap, ++sums) {
      const Progression seen = seenByTap(g, d, tap);
      size_t c = 0;
      for (; c + kSideBySide <= planes.count; c += kSideBySide)
        addInnermost<kSideBySide>(seen, planes, c, sums, taps);
      for (; c < planes.count; ++c) addInnermost<1>(seen, planes, c, sums, taps);
    }
    return;
  }
  const size_t inner = planes.size / static_cast<size_t>(g.input[d]);
  const int64_t innerTaps = product(std::span(g.kernel).subspan(d + 1));
  std::vector<float> rows(planes.count * inner);
  for (int64_t tap = 0; tap < g.kernel[d]; ++tap) {
    const Progression seen = seenByTap(g, d, tap);
    sumRows(planes.data + static_cast<size_t>(seen.first) * inner, planes.count, planes.stride,
            static_cast<size_t>(seen.count), static_cast<size_t>(seen.step) * inner, inner, rows.data());
    addTapSums(g, d + 1, {rows.data(), planes.count, inner, inner}, sums + tap * innerTaps);
  }
}

}  // namespace

LayerGeometry geometryOf(const WeightedOp& op) {
  LayerGeometry g;
  const auto conv = aten::asConvolution(op.node);
  if (!conv) {
    g.channels = op.weight->dim(1);
    g.outputs = op.weight->dim(0);
    g.positions = op.input->numElements() / std::max<int64_t>(g.channels, 1);
    return g;
  }
  const auto spatial = [&](const ir::Value* value) {
    const Shape& shape = value->shape();
    return std::vector<int64_t>(shape.end() - static_cast<std::ptrdiff_t>(conv->spatialRank()), shape.end());
  };
  g.groups = conv->groups;
  g.channels = conv->inputChannels() / conv->groups;
  g.outputs = conv->outputChannels() / conv->groups;
  g.kernel = spatial(op.weight);
  g.taps = product(g.kernel);
  g.input = spatial(op.input);
  g.output = spatial(op.node->result());
  g.stride = conv->stride;
  g.dilation = conv->dilation;
  g.pad = conv->padBefore;
  g.transposed = conv->transposed;
  g.positions = op.node->result()->numElements() / std::max<int64_t>(conv->outputChannels(), 1);
  g.images = g.positions / std::max<int64_t>(product(g.output), 1);
  return g;
}

std::vector<Origin> originsOf(const LayerGeometry& g, const std::vector<int64_t>& positions) {
  const int64_t perImage = product(g.output);
  // Each row of a linear layer counts as an image with one position.
  const int64_t elementsPerImage = g.groups * g.channels * product(g.input);
  std::vector<Origin> origins;
  for (int64_t position : positions) {
    Origin& origin = origins.emplace_back();
    origin.image = position / perImage * elementsPerImage;
    for (size_t d = g.output.size(); d-- > 0;) {
      origin.at[d] = position % g.output[d] * g.stride[d] - g.pad[d];
      position /= g.output[d];
    }
  }
  return origins;
}

TapOffsets offsetsOf(const LayerGeometry& g, const std::vector<Origin>& origins, int64_t tap) {
  std::array<int64_t, 3> shift{};
  for (size_t d = g.output.size(); d-- > 0; tap /= g.kernel[d]) shift[d] = tap % g.kernel[d] * g.dilation[d];
  TapOffsets offsets;
  offsets.at.reserve(origins.size());
  bool allInside = true, isRun = true;
  for (const Origin& origin : origins) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < g.output.size(); ++d) {
      const int64_t at = origin.at[d] + shift[d];
      inside &= at >= 0 && at < g.input[d];
      offset = offset * g.input[d] + at;
    }
    allInside &= inside;
    offsets.at.push_back(inside ? origin.image + offset : -1);
    isRun &= offsets.at.back() == offsets.at.front() + static_cast<int64_t>(offsets.at.size()) - 1;
  }
  if (allInside && !origins.empty()) offsets.kind = isRun ? TapOffsets::Kind::Run : TapOffsets::Kind::Inside;
  return offsets;
}

void gatherColumn(const LayerGeometry& g, std::span<const float> input, int64_t channel,
                  const TapOffsets& offsets, float* out) {
  const float* plane = &input[static_cast<size_t>(channel * product(g.input))];
  const std::vector<int64_t>& at = offsets.at;
  if (offsets.kind == TapOffsets::Kind::Run) {
    std::copy_n(plane + at[0], at.size(), out);
  } else if (offsets.kind == TapOffsets::Kind::Inside) {
    for (size_t i = 0; i < at.size(); ++i) out[i] = plane[at[i]];
  } else {
    for (size_t i = 0; i < at.size(); ++i) out[i] = at[i] >= 0 ? plane[at[i]] : 0.0f;
  }
}

std::vector<float> columnMeans(const LayerGeometry& g, std::span<const float> input) {
  const auto channels = static_cast<size_t>(g.groups * g.channels), taps = static_cast<size_t>(g.taps);
  std::vector<float> means(channels * taps);
  if (input.empty()) return means;
  if (g.kernel.empty()) {
    for (size_t i = 0; i < input.size(); i += channels) {
      for (size_t c = 0; c < channels; ++c) means[c] += input[i + c];
    }
  } else {
    const auto plane = static_cast<size_t>(product(g.input));
    parallelFor((channels + kSideBySide - 1) / kSideBySide, [&](size_t tile) {
      const size_t first = tile * kSideBySide, count = std::min(kSideBySide, channels - first);
      for (size_t image = 0; image < static_cast<size_t>(g.images); ++image)
        addTapSums(g, 0, {&input[(image * channels + first) * plane], count, plane, plane},
                   &means[first * taps]);
    });
  }
  for (float& mean : means) mean /= static_cast<float>(g.positions);
  return means;
}

}  // namespace carina::quantize
