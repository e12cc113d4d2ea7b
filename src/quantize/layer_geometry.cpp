// SPDX-License-Identifier: Apache-2.0
#include "quantize/layer_geometry.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <numeric>

#include "aten/conv_op.hpp"

namespace carina::quantize {
namespace {

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// Input indices of one dimension: first, first + step, ...
struct Progression {
  int64_t first = 0, step = 1, count = 0;
};

/// Those that a tap multiplies, over all outputs: output * stride + shift is an input; of a transposed layer
/// input * stride + shift is an output.
Progression seenByTap(const LayerGeometry& g, size_t d, int64_t tap) {
  const int64_t from = g.transposed ? g.input[d] : g.output[d], to = g.transposed ? g.output[d] : g.input[d];
  const int64_t stride = g.stride[d], shift = tap * g.dilation[d] - g.pad[d];
  const int64_t first = shift < 0 ? (-shift + stride - 1) / stride : 0;
  const int64_t end = shift < to ? std::min(from, (to - shift + stride - 1) / stride) : 0;
  const int64_t count = std::max<int64_t>(end - first, 0);
  return g.transposed ? Progression{first, 1, count} : Progression{first * stride + shift, stride, count};
}

/// Adds to sums, per tap of the dimensions from d on, the values that it multiplies.
void addTapSums(const LayerGeometry& g, size_t d, std::span<const float> values, float* sums) {
  if (d == g.kernel.size()) {
    *sums += values[0];
    return;
  }
  const auto inner = values.size() / static_cast<size_t>(g.input[d]);
  const int64_t innerTaps = product(std::span(g.kernel).subspan(d + 1));
  std::vector<float> row(inner);
  for (int64_t tap = 0; tap < g.kernel[d]; ++tap) {
    std::fill(row.begin(), row.end(), 0.0f);
    const Progression seen = seenByTap(g, d, tap);
    for (int64_t k = 0; k < seen.count; ++k) {
      const float* from = &values[static_cast<size_t>(seen.first + k * seen.step) * inner];
      for (size_t i = 0; i < inner; ++i) row[i] += from[i];
    }
    addTapSums(g, d + 1, row, sums + tap * innerTaps);
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
  // The rows of a linear layer are images of its channels.
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

std::vector<int64_t> offsetsOf(const LayerGeometry& g, const std::vector<Origin>& origins, int64_t tap) {
  std::array<int64_t, 3> shift{};
  for (size_t d = g.output.size(); d-- > 0; tap /= g.kernel[d]) shift[d] = tap % g.kernel[d] * g.dilation[d];
  std::vector<int64_t> offsets;
  offsets.reserve(origins.size());
  for (const Origin& origin : origins) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < g.output.size(); ++d) {
      const int64_t at = origin.at[d] + shift[d];
      inside &= at >= 0 && at < g.input[d];
      offset = offset * g.input[d] + at;
    }
    offsets.push_back(inside ? origin.image + offset : -1);
  }
  return offsets;
}

void gatherColumn(const LayerGeometry& g, std::span<const float> input, int64_t channel,
                  const std::vector<int64_t>& offsets, float* out) {
  const float* plane = &input[static_cast<size_t>(channel * product(g.input))];
  for (size_t i = 0; i < offsets.size(); ++i) out[i] = offsets[i] >= 0 ? plane[offsets[i]] : 0.0f;
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
    tbb::parallel_for(size_t{0}, channels, [&](size_t c) {
      for (size_t image = 0; image < static_cast<size_t>(g.images); ++image)
        addTapSums(g, 0, input.subspan((image * channels + c) * plane, plane), &means[c * taps]);
    });
  }
  for (float& mean : means) mean /= static_cast<float>(g.positions);
  return means;
}

}  // namespace carina::quantize
