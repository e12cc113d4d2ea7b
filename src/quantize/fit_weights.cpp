// SPDX-License-Identifier: Apache-2.0
#include "quantize/fit_weights.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "aten/conv_op.hpp"
#include "aten/executor.hpp"
#include "quantize/fit_kernels.hpp"

namespace carina::quantize {
namespace {

constexpr size_t kMostColumns = 256;  // of a block: errors move no further than to the end of it
constexpr size_t kMostRows = 2048;    // inputs that are looked at, over all samples
constexpr size_t kMostSamples = 64;   // of those that are given, evenly spread

/// What a layer multiplies its weights by: for every output position a row with the inputs that it sees, of
/// one group of channels. A linear layer has one channel per column and one tap.
struct Geometry {
  int64_t groups = 1, channels = 1, taps = 1;  // channels: per group
  int64_t positions = 1;                       // rows per run
  std::vector<int64_t> input, output, kernel;  // spatial
  ir::Ints stride, dilation, pad;
  int64_t outputsPerImage = 1, inputsPerImage = 1;

  int64_t columns() const { return channels * taps; }
};

std::optional<Geometry> geometryOf(const WeightedOp& op) {
  Geometry g;
  const auto conv = aten::asConvolution(op.node);
  if (!conv) {
    g.channels = op.weight->dim(1);
    g.positions = op.input->numElements() / std::max<int64_t>(g.channels, 1);
    return g;
  }
  if (conv->transposed) return std::nullopt;
  const size_t rank = conv->spatialRank();
  const auto spatial = [&](const ir::Value* value) {
    const Shape& shape = value->shape();
    return std::vector<int64_t>(shape.end() - static_cast<std::ptrdiff_t>(rank), shape.end());
  };
  const auto product = [](const std::vector<int64_t>& dims) {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  };
  g.groups = conv->groups;
  g.channels = conv->inputChannels() / conv->groups;
  g.kernel = spatial(op.weight);
  g.taps = product(g.kernel);
  g.input = spatial(op.input);
  g.output = spatial(op.node->result());
  g.stride = conv->stride;
  g.dilation = conv->dilation;
  g.pad = conv->padBefore;
  g.outputsPerImage = product(g.output);
  g.inputsPerImage = product(g.input);
  g.positions = op.node->result()->numElements() / std::max<int64_t>(conv->outputChannels(), 1);
  return g;
}

/// Where the inputs of one output position begin.
struct Origin {
  int64_t image = 0;            // element
  std::array<int64_t, 3> at{};  // spatial, of the first tap; may lie in the padding
};

std::vector<Origin> originsOf(const Geometry& g, const std::vector<int64_t>& positions) {
  std::vector<Origin> origins;
  for (int64_t position : positions) {
    Origin& origin = origins.emplace_back();
    origin.image = position / g.outputsPerImage * g.groups * g.channels * g.inputsPerImage;
    for (size_t d = g.output.size(); d-- > 0;) {
      origin.at[d] = position % g.output[d] * g.stride[d] - g.pad[d];
      position /= g.output[d];
    }
  }
  return origins;
}

/// The inputs of one column.
void gatherColumn(const Geometry& g, std::span<const float> input, int64_t group, int64_t column,
                  const std::vector<Origin>& origins, float* out) {
  std::array<int64_t, 3> shift{};
  int64_t tap = column % g.taps;
  for (size_t d = g.output.size(); d-- > 0; tap /= g.kernel[d]) shift[d] = tap % g.kernel[d] * g.dilation[d];
  const int64_t plane = (group * g.channels + column / g.taps) * g.inputsPerImage;
  for (size_t i = 0; i < origins.size(); ++i) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < g.output.size(); ++d) {
      const int64_t at = origins[i].at[d] + shift[d];
      inside &= at >= 0 && at < g.input[d];
      offset = offset * g.input[d] + at;
    }
    out[i] = inside ? input[static_cast<size_t>(origins[i].image + plane + offset)] : 0.0f;
  }
}

/// Columns that are rounded together.
struct Block {
  int64_t group = 0, first = 0;
  size_t columns = 0;
  std::vector<float> gram;  // lower triangle
  std::vector<double> sums;
};

/// The layers of one weight: an unrolled recurrent layer has one per step.
struct Fit {
  std::vector<WeightedOp> layers;
  Geometry geometry;
  std::vector<Block> blocks;
  size_t rows = 0;

  /// Rows per sample and layer.
  size_t quota(size_t samples) const { return std::max<size_t>(1, kMostRows / (samples * layers.size())); }
  /// Whether the samples will show enough rows to tell the covariance of a block's columns.
  bool isWorthwhile(size_t samples) const {
    const auto columns = std::min(static_cast<size_t>(geometry.columns()), kMostColumns);
    size_t expected = 0;
    for (const WeightedOp& layer : layers) {
      const auto positions = static_cast<size_t>(geometryOf(layer)->positions);
      if (!layer.input->isConstant()) expected += samples * std::min(positions, quota(samples));
    }
    return expected > 0 && expected * 2 >= columns;
  }
};

std::vector<Block> blocksOf(const Geometry& g) {
  // Whole channels where that is possible.
  const auto most = static_cast<int64_t>(kMostColumns);
  const int64_t width = g.taps <= most ? most / g.taps * g.taps : most;
  std::vector<Block> blocks;
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

void observe(Fit& fit, const Tensor& tensor, size_t mostRows) {
  const std::vector<Origin> origins =
      originsOf(fit.geometry, chosenPositions(fit.geometry.positions, mostRows));
  const size_t stride = (origins.size() + kRowPadding - 1) / kRowPadding * kRowPadding;
  const auto input = tensor.as<float>();
  tbb::parallel_for(size_t{0}, fit.blocks.size(), [&](size_t b) {
    Block& block = fit.blocks[b];
    std::vector<float> storage(block.columns * stride + kRowPadding, 0.0f);
    void* aligned = storage.data();
    size_t space = storage.size() * sizeof(float);
    auto* rows = static_cast<float*>(std::align(64, block.columns * stride * sizeof(float), aligned, space));
    for (size_t c = 0; c < block.columns; ++c) {
      float* column = rows + c * stride;
      gatherColumn(fit.geometry, input, block.group, block.first + static_cast<int64_t>(c), origins, column);
      block.sums[c] += std::accumulate(column, column + origins.size(), 0.0);
    }
    addGram({rows, block.columns * stride}, block.columns, stride, block.gram);
  });
  fit.rows += origins.size();
}

/// Mean products of columns, less the products of their means where biases take those.
double covariance(const Block& block, size_t rows, bool centred, size_t i, size_t j) {
  const double count = static_cast<double>(rows);
  const double product =
      static_cast<double>(block.gram[std::max(i, j) * block.columns + std::min(i, j)]) / count;
  return centred ? product - block.sums[i] * block.sums[j] / (count * count) : product;
}

/// Covariance = U D U^T with U unit upper triangular, for the columns in the order in which they are rounded:
/// returns U by columns. Between few rows columns seem related that are not: covariances are held back.
std::vector<float> factorOf(const Block& block, size_t rows, bool centred, const std::vector<size_t>& order) {
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
  for (size_t k = n; k-- > 0;) {
    const double* row = &h[k * n];
    const double inverse = row[k] > 0 ? 1 / row[k] : 0;
    for (size_t i = 0; i < k; ++i) {
      const double u = row[i] * inverse;
      factor[k * n + i] = static_cast<float>(u);
      double* other = &h[i * n];
      for (size_t j = 0; j <= i; ++j) other[j] -= u * row[j];
    }
  }
  return factor;
}

/// Rounds the block's weights of the output channels of its group.
void roundBlock(const Fit& fit, const Block& block, std::span<const float> weights, std::span<int8_t> codes,
                const WeightCodes& at, bool centred) {
  const size_t n = block.columns;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  // What matters most is rounded first: the others take its errors back.
  const auto energy = [&](size_t c) { return covariance(block, fit.rows, centred, c, c); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return energy(a) > energy(b); });
  if (!(energy(order.front()) > 0)) return;  // inputs that never change
  const std::vector<float> factor = factorOf(block, fit.rows, centred, order);

  const auto columns = static_cast<size_t>(fit.geometry.columns());
  const size_t outputs = weights.size() / columns / static_cast<size_t>(fit.geometry.groups);
  const size_t firstOutput = static_cast<size_t>(block.group) * outputs;
  constexpr size_t kTile = 64;
  tbb::parallel_for(size_t{0}, (outputs + kTile - 1) / kTile, [&](size_t tile) {
    const size_t from = tile * kTile, count = std::min(kTile, outputs - from);
    std::vector<float> errors(n * count), values(count);
    for (size_t k = 0; k < n; ++k) {
      const size_t column = static_cast<size_t>(block.first) + order[k];
      const auto place = [&](size_t r) { return (firstOutput + from + r) * columns + column; };
      for (size_t r = 0; r < count; ++r) values[r] = weights[place(r)];
      addFeedback(errors, k, count, {&factor[k * n], k}, values);
      for (size_t r = 0; r < count; ++r) {
        const float scale = at.scales[at.perChannel ? firstOutput + from + r : 0];
        const float code = weightCode(values[r] / scale);
        codes[place(r)] = static_cast<int8_t>(code);
        errors[k * count + r] = weights[place(r)] - code * scale;
      }
    }
  });
}

/// Whether two layers may have the same codes: scales of 16-bit layers differ by what makes a multiplier
/// short.
bool alike(const WeightCodes& a, const WeightCodes& b) {
  if (a.scales.size() != b.scales.size()) return false;
  for (size_t c = 0; c < a.scales.size(); ++c) {
    if (std::abs(a.scales[c] - b.scales[c]) > 0x1p-12f * a.scales[c]) return false;
  }
  return true;
}

std::vector<Fit> fitsOf(const ir::Graph& graph, const LayerCodes& codes, size_t samples) {
  std::vector<Fit> fits;
  std::unordered_map<const ir::Value*, size_t> byWeight;
  for (const ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    const auto found = codes.find(node);
    if (!op || found == codes.end()) continue;
    const auto geometry = geometryOf(*op);
    if (!geometry || geometry->columns() == 0) continue;
    const auto [it, isNew] = byWeight.try_emplace(op->weight, fits.size());
    if (isNew) {
      fits.push_back({{}, *geometry, {}, 0});
    } else if (fits[it->second].geometry.groups != geometry->groups ||
               !alike(codes.at(fits[it->second].layers[0].node), found->second)) {
      continue;
    }
    fits[it->second].layers.push_back(*op);
  }
  fits.erase(
      std::remove_if(fits.begin(), fits.end(), [&](const Fit& fit) { return !fit.isWorthwhile(samples); }),
      fits.end());
  for (Fit& fit : fits) fit.blocks = blocksOf(fit.geometry);
  return fits;
}

}  // namespace

LayerCodes roundWeights(const ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                        const std::vector<QParams>& params) {
  LayerCodes codes;
  for (const ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    const auto scales = op ? layerScales(*node, annotation, params) : std::nullopt;
    if (scales) codes.emplace(node, quantizeWeight(*op, *scales, assignment.of(*node).settings));
  }
  return codes;
}

Status fitWeights(const ir::Graph& graph, std::span<const Sample> samples, bool meansAreCorrected,
                  LayerCodes& codes) {
  const size_t count = std::min(samples.size(), kMostSamples);
  std::vector<Fit> fits = fitsOf(graph, codes, count);
  if (fits.empty()) return {};
  std::unordered_map<const ir::Value*, std::vector<std::pair<size_t, size_t>>> readers;  // fit, layer
  for (size_t f = 0; f < fits.size(); ++f) {
    for (size_t l = 0; l < fits[f].layers.size(); ++l) readers[fits[f].layers[l].input].emplace_back(f, l);
  }
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph));
  for (size_t s = 0; s < count; ++s) {
    const Sample& sample = samples[s * samples.size() / count];
    CARINA_TRY(const auto outputs, executor.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
      const auto found = readers.find(&value);
      if (found == readers.end()) return;
      for (const auto& [f, l] : found->second) {
        Fit& fit = fits[f];
        fit.geometry = *geometryOf(fit.layers[l]);
        observe(fit, tensor, fit.quota(count));
      }
    }));
  }
  for (const Fit& fit : fits) {
    const auto weights = fit.layers[0].weight->constant().as<float>();
    WeightCodes& fitted = codes.at(fit.layers[0].node);
    const auto values = fitted.codes.mutableAs<int8_t>();
    tbb::parallel_for(size_t{0}, fit.blocks.size(), [&](size_t b) {
      roundBlock(fit, fit.blocks[b], weights, values, fitted, meansAreCorrected);
    });
    for (size_t l = 1; l < fit.layers.size(); ++l) codes.at(fit.layers[l].node).codes = fitted.codes;
  }
  return {};
}

}  // namespace carina::quantize
