// SPDX-License-Identifier: Apache-2.0
#include "quantize/layer_inputs.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "base/parallel.hpp"
#include "quantize/fit_kernels.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

constexpr size_t kMaxColumns = 256;  // of a block: errors are not passed on beyond its end
// Rows over all samples: enough for a good estimate of the covariance of a block's columns.
constexpr size_t kRowsPerColumn = 32, kMinRows = 512, kMostRows = 2048;
constexpr size_t kMaxSamples = 64;  // that are used for covariances, evenly spread over those given

std::vector<ColumnBlock> blocksOf(const LayerGeometry& g) {
  // Whole channels if possible.
  const auto most = static_cast<int64_t>(kMaxColumns);
  const int64_t width = g.taps <= most ? most / g.taps * g.taps : most;
  std::vector<ColumnBlock> blocks;
  for (int64_t group = 0; group < g.groups; ++group) {
    for (int64_t first = 0; first < g.columns(); first += width) {
      const auto columns = static_cast<size_t>(std::min(width, g.columns() - first));
      blocks.push_back(
          {group, first, columns, std::vector<float>(columns * columns), std::vector<double>(columns)});
    }
  }
  return blocks;
}

/// Evenly spread over all positions.
std::vector<int64_t> chosenPositions(int64_t positions, size_t most) {
  const auto count = std::min<int64_t>(positions, static_cast<int64_t>(most));
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) chosen.push_back((2 * i + 1) * positions / (2 * count));
  return chosen;
}

/// sums[c] += the sum of column c's rows. Several columns at a time: additions within one column depend on
/// each other.
void addSums(const float* columns, size_t rows, size_t stride, std::span<double> sums) {
  constexpr size_t kSideBySide = 8;
  size_t c = 0;
  for (; c + kSideBySide <= sums.size(); c += kSideBySide) {
    double sum[kSideBySide] = {};
    for (size_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < kSideBySide; ++i) sum[i] += columns[(c + i) * stride + r];
    }
    for (size_t i = 0; i < kSideBySide; ++i) sums[c + i] += sum[i];
  }
  for (; c < sums.size(); ++c)
    sums[c] += std::accumulate(columns + c * stride, columns + c * stride + rows, 0.0);
}

void addRows(LayerInputs::Weight& weight, const LayerGeometry& geometry, const Tensor& tensor) {
  const std::vector<Origin> origins =
      originsOf(geometry, chosenPositions(geometry.positions, weight.rowsPerLayer));
  const size_t stride = (origins.size() + kRowPadding - 1) / kRowPadding * kRowPadding;
  const auto input = tensor.as<float>();
  // If blocks hold whole channels, all channels have the same taps.
  std::vector<TapOffsets> offsets;
  for (int64_t tap = 0; tap < geometry.taps && geometry.taps <= static_cast<int64_t>(kMaxColumns); ++tap)
    offsets.push_back(offsetsOf(geometry, origins, tap));
  parallelFor(weight.blocks.size(), [&](size_t b) {
    ColumnBlock& block = weight.blocks[b];
    const auto storage = std::make_unique_for_overwrite<float[]>(block.columns * stride + kRowPadding);
    void* aligned = storage.get();
    size_t space = (block.columns * stride + kRowPadding) * sizeof(float);
    auto* rows = static_cast<float*>(std::align(64, block.columns * stride * sizeof(float), aligned, space));
    for (size_t c = 0; c < block.columns; ++c) {
      float* column = rows + c * stride;
      const int64_t at = block.first + static_cast<int64_t>(c), tap = at % geometry.taps;
      const int64_t channel = block.group * geometry.channels + at / geometry.taps;
      TapOffsets own;
      if (offsets.empty()) own = offsetsOf(geometry, origins, tap);
      gatherColumn(geometry, input, channel, offsets.empty() ? own : offsets[static_cast<size_t>(tap)],
                   column);
      std::fill(column + origins.size(), column + stride, 0.0f);
    }
    addSums(rows, origins.size(), stride, block.sums);
    addGram({rows, block.columns * stride}, block.columns, stride, block.gram);
  });
  weight.rows += origins.size();
}

}  // namespace

LayerInputs::LayerInputs(const ir::Graph& graph, const Annotation& annotation, Wanted wanted, size_t samples)
    : samples_(samples), means_(wanted.means), isLookedAt_(samples) {
  if (!wanted.covariances && !wanted.means) return;
  std::map<std::tuple<const ir::Value*, int64_t, bool>, size_t> byUse;  // weight, groups, transposed
  for (const ir::Node* node : nodesWithLoops(graph)) {
    const auto op = asWeighted(*node);
    if (!op || !annotation.groupOfOperand(*node, 0)) continue;
    const LayerGeometry geometry = geometryOf(*op);
    if (geometry.columns() == 0 || geometry.positions == 0) continue;
    const auto [it, isNew] =
        byUse.try_emplace({op->weight, geometry.groups, geometry.transposed}, weights_.size());
    if (isNew) weights_.emplace_back();
    weights_[it->second].layers.push_back(layers_.size());
    const auto columns = static_cast<size_t>(geometry.groups * geometry.columns());
    layers_.push_back({*op, geometry, it->second, std::vector<float>(means_ ? columns * samples : 0)});
    if (!op->input->isConstant()) wanted_.insert(op->input);
  }
  const size_t looked = wanted.covariances ? std::min(samples, kMaxSamples) : 0;
  for (size_t s = 0; s < looked; ++s) isLookedAt_[s * samples / looked] = true;
  for (Weight& weight : weights_) {
    const LayerGeometry& geometry = layers_[weight.layers[0]].geometry;
    if (looked == 0 || geometry.transposed) continue;
    const auto columns = std::min(static_cast<size_t>(geometry.columns()), kMaxColumns);
    const size_t rows = std::clamp(kRowsPerColumn * columns, kMinRows, kMostRows);
    weight.rowsPerLayer = std::max<size_t>(1, rows / (looked * weight.layers.size()));
    size_t expected = 0;
    for (size_t l : weight.layers) {
      const auto positions = static_cast<size_t>(layers_[l].geometry.positions);
      if (!layers_[l].op.input->isConstant()) expected += looked * std::min(positions, weight.rowsPerLayer);
    }
    if (expected > 0 && expected * 2 >= columns) weight.blocks = blocksOf(geometry);
  }
}

void LayerInputs::add(size_t sample, const Values& values) {
  parallelFor(weights_.size(), [&](size_t w) {
    for (size_t l : weights_[w].layers) {
      Layer& layer = layers_[l];
      const bool isConstant = layer.op.input->isConstant();
      const std::vector<Tensor> tensors =
          isConstant ? std::vector{layer.op.input->constant()} : values.at(layer.op.input);
      for (const Tensor& tensor : tensors) {
        if (means_) {
          const std::vector<float> means = columnMeans(layer.geometry, tensor.as<float>());
          const auto share = 1 / static_cast<float>(tensors.size());
          for (size_t c = 0; c < means.size(); ++c) layer.means[c * samples_ + sample] += means[c] * share;
        }
        if (isLookedAt_[sample] && !weights_[w].blocks.empty() && !isConstant)
          addRows(weights_[w], layer.geometry, tensor);
      }
    }
  });
}

void LayerInputs::leaveAsRounded(std::span<const ir::Node* const> layers) {
  const std::unordered_set<const ir::Node*> left(layers.begin(), layers.end());
  for (Layer& layer : layers_) {
    if (left.count(layer.op.node) != 0) layer.fits = false;
  }
}

}  // namespace carina::quantize
