// SPDX-License-Identifier: Apache-2.0
#include "quantize/fit_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel.hpp"
#include "quantize/fit_kernels.hpp"
#include "quantize/loops.hpp"
#include "quantize/rounding_kernels.hpp"

namespace carina::quantize {
namespace {

/// The mean product of two columns, less the product of their means if bias correction accounts for it.
double covariance(const ColumnBlock& block, size_t rows, bool centred, size_t i, size_t j) {
  const double count = static_cast<double>(rows);
  const double product =
      static_cast<double>(block.gram[std::max(i, j) * block.columns + std::min(i, j)]) / count;
  return centred ? product - block.sums[i] * block.sums[j] / (count * count) : product;
}

/// Covariance = U D U^T with U unit upper triangular, for the columns in rounding order: returns U by
/// columns. With few rows, unrelated columns appear correlated, so covariances are shrunk.
std::vector<float> factorOf(const ColumnBlock& block, size_t rows, bool centred,
                            const std::vector<size_t>& order) {
  const size_t n = block.columns;
  const double count = static_cast<double>(rows);
  const double trusted = count / (count + static_cast<double>(n));
  std::vector<double> h(n * n);
  double trace = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double value = covariance(block, rows, centred, order[i], order[j]);
      h[i * n + j] = h[j * n + i] = i == j ? value : value * trusted;
    }
    trace += h[i * n + i];
  }
  const double least = 1e-3 * trace / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) h[i * n + i] = std::max(h[i * n + i], 0.0) + least;
  std::vector<float> factor(n * n, 0.0f);
  factorize(h, n, factor);
  return factor;
}

/// Rounds the weights of a block, for all output channels of its group.
void roundBlock(const LayerInputs::Layer& layer, const ColumnBlock& block, size_t rows, bool centred,
                const WeightCodes& at, std::span<int8_t> codes) {
  const auto weights = layer.op.weight->constant().as<float>();
  const size_t n = block.columns;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  // Columns with the most energy are rounded first: the others compensate for their errors.
  const auto energy = [&](size_t c) { return covariance(block, rows, centred, c, c); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return energy(a) > energy(b); });
  if (!(energy(order.front()) > 0)) return;  // inputs that never change
  const std::vector<float> factor = factorOf(block, rows, centred, order);

  const auto columns = static_cast<size_t>(layer.geometry.columns());
  const auto outputs = static_cast<size_t>(layer.geometry.outputs);
  const size_t firstOutput = static_cast<size_t>(block.group) * outputs;
  constexpr size_t kTile = 64;
  const auto most = static_cast<float>(at.range.max);
  parallelFor((outputs + kTile - 1) / kTile, [&](size_t tile) {
    const size_t from = tile * kTile, count = std::min(kTile, outputs - from);
    const size_t corner = (firstOutput + from) * columns + static_cast<size_t>(block.first);
    // By columns, in rounding order.
    std::vector<float> errors(n * count), sorted(n * count), values(count), scales(count);
    std::vector<int8_t> rounded(n * count);
    for (size_t r = 0; r < count; ++r) {
      scales[r] = at.scales[at.perChannel ? firstOutput + from + r : 0];
      for (size_t k = 0; k < n; ++k) sorted[k * count + r] = weights[corner + r * columns + order[k]];
    }
    for (size_t k = 0; k < n; ++k) {
      const float* column = &sorted[k * count];
      std::copy_n(column, count, values.begin());
      addFeedback(errors, k, count, {&factor[k * n], k}, values);
      roundColumn(values, column, scales.data(), most, &rounded[k * count], &errors[k * count]);
    }
    for (size_t r = 0; r < count; ++r) {
      for (size_t k = 0; k < n; ++k) codes[corner + r * columns + order[k]] = rounded[k * count + r];
    }
  });
}

/// Whether two layers may share codes: scales of 16-bit layers differ by the adjustment that shortens a
/// multiplier.
bool alike(const WeightCodes& a, const WeightCodes& b) {
  if (a.range != b.range || a.scales.size() != b.scales.size()) return false;
  for (size_t c = 0; c < a.scales.size(); ++c) {
    if (std::abs(a.scales[c] - b.scales[c]) > 0x1p-12f * a.scales[c]) return false;
  }
  return true;
}

}  // namespace

LayerCodes roundWeights(const ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                        const std::vector<QParams>& params) {
  LayerCodes codes;
  for (const ir::Node* node : nodesWithLoops(graph)) {
    const auto op = asWeighted(*node);
    const auto scales = op ? layerScales(*node, annotation, params) : std::nullopt;
    if (scales) codes.emplace(node, quantizeWeight(*op, *scales, assignment.of(*node).settings));
  }
  return codes;
}

void fitWeights(const LayerInputs& inputs, bool meansAreCorrected, LayerCodes& codes) {
  parallelFor(inputs.weights().size(), [&](size_t w) {
    const LayerInputs::Weight& weight = inputs.weights()[w];
    const auto fits = [&](size_t layer) { return inputs.layers()[layer].fits; };
    if (weight.blocks.empty() || !std::all_of(weight.layers.begin(), weight.layers.end(), fits)) return;
    std::vector<WeightCodes*> fitted;
    for (size_t l : weight.layers) {
      const LayerInputs::Layer& layer = inputs.layers()[l];
      WeightCodes& own = codes.at(layer.op.node);
      const auto like = std::find_if(fitted.begin(), fitted.end(),
                                     [&](const WeightCodes* other) { return alike(*other, own); });
      if (like != fitted.end()) {
        own.codes = (*like)->codes;
        continue;
      }
      const auto values = own.codes.mutableAs<int8_t>();
      parallelFor(weight.blocks.size(), [&](size_t b) {
        roundBlock(layer, weight.blocks[b], weight.rows, meansAreCorrected, own, values);
      });
      fitted.push_back(&own);
    }
  });
}

}  // namespace carina::quantize
