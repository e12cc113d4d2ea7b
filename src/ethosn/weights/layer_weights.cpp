// SPDX-License-Identifier: Apache-2.0
#include "ethosn/weights/layer_weights.hpp"

#include <algorithm>

namespace carina::ethosn {
namespace {

int32_t divideUp(int32_t value, int32_t by) {
  return (value + by - 1) / by;
}

int32_t roundUp(int32_t value, int32_t step) {
  return divideUp(value, step) * step;
}

/// Inputs in slices that the MCE processes at once; within a slice sub-filter by sub-filter, tap by tap.
void directOrder(const LayerWeights& layer, const Variant& variant, int32_t output, int32_t first,
                 int32_t count, std::vector<int16_t>& out) {
  const std::vector<SubFilter> subs = subFilters(layer);
  const std::vector<SubFilter> pieces = filterPieces(layer.height, layer.width, layer.algorithm);
  const int32_t step = variant.igs();
  const int32_t end = std::min(first + count, layer.inputs);
  for (const SubFilter& piece : pieces) {
    for (int32_t slice = first; slice < end; slice += step) {
      const int32_t real = std::min(step, end - slice);
      for (size_t s = 0; s < subs.size(); ++s) {
        const SubFilter& sub = subs[s];
        // Only the last sub-map of a slice may be short.
        const int32_t channels = s + 1 == subs.size() ? real : step;
        if (sub.height == 0 || sub.width == 0) {
          out.insert(out.end(), static_cast<size_t>(channels), 0);
          continue;
        }
        const int32_t rows = pieces.size() > 1 ? piece.height : sub.height;
        const int32_t columns = pieces.size() > 1 ? piece.width : sub.width;
        for (int32_t y = 0; y < rows; ++y) {
          for (int32_t x = 0; x < columns; ++x) {
            const int32_t atY = (piece.offsetY + y) * layer.strideY + sub.offsetY;
            const int32_t atX = (piece.offsetX + x) * layer.strideX + sub.offsetX;
            for (int32_t c = 0; c < channels; ++c) {
              const bool inside = c < real && atY < layer.height && atX < layer.width;
              out.push_back(inside ? layer.at(atY, atX, slice + c, output) : int16_t{0});
            }
          }
        }
      }
    }
  }
}

void winogradOrder(const LayerWeights& layer, int32_t output, int32_t first, int32_t count,
                   std::vector<int16_t>& out) {
  for (const SubFilter& piece : filterPieces(layer.height, layer.width, layer.algorithm)) {
    for (int32_t c = first; c < std::min(first + count, layer.inputs); ++c) {
      for (int32_t y = piece.offsetY; y < piece.offsetY + piece.height; ++y) {
        for (int32_t x = piece.offsetX; x < piece.offsetX + piece.width; ++x) {
          out.push_back(y < layer.height && x < layer.width ? layer.at(y, x, c, output) : int16_t{0});
        }
      }
    }
  }
}

void depthwiseOrder(const LayerWeights& layer, int32_t output, std::vector<int16_t>& out) {
  for (const SubFilter& sub : subFilters(layer)) {
    for (int32_t y = 0; y < sub.height; ++y) {
      for (int32_t x = 0; x < sub.width; ++x) {
        out.push_back(
            layer.at(y * layer.strideY + sub.offsetY, x * layer.strideX + sub.offsetX, output, output));
      }
    }
  }
}

/// The 1024 inputs of a brick group come in parts of 16 elements per bank, the same element of all banks
/// together; with 8 banks, the even parts come first.
void vectorOrder(const LayerWeights& layer, const Variant& variant, int32_t output, int32_t first,
                 int32_t count, std::vector<int16_t>& out) {
  const int32_t banks = variant.banks();
  const int32_t quarter = 16 * banks, perPatch = 16 / banks;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t brick = i / kVectorProductInputs, inBrick = i % kVectorProductInputs;
    const int32_t which = inBrick / quarter, within = inBrick % quarter;
    const int32_t part = which % 4 * perPatch + which / 4;
    const int32_t input =
        first + brick * kVectorProductInputs + part * quarter + within % banks * 16 + within / banks;
    out.push_back(input < layer.inputs ? layer.at(0, 0, input, output) : int16_t{0});
  }
}

}  // namespace

int16_t LayerWeights::at(int32_t y, int32_t x, int32_t input, int32_t output) const {
  const size_t tap = (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) *
                         static_cast<size_t>(inputs) +
                     static_cast<size_t>(input);
  if (operation == MceOperation::Depthwise) return weights[tap];
  return weights[tap * static_cast<size_t>(outputs) + static_cast<size_t>(output)];
}

std::vector<SubFilter> subFilters(const LayerWeights& layer) {
  const auto size = [](int32_t whole, int32_t stride, int32_t offset) {
    return offset == stride - 1 ? whole / stride : divideUp(whole, stride);
  };
  std::vector<SubFilter> out;
  for (int32_t y = 0; y < layer.strideY; ++y) {
    for (int32_t x = 0; x < layer.strideX; ++x) {
      SubFilter sub;
      sub.offsetY = (y + layer.padTop) % layer.strideY;
      sub.offsetX = (x + layer.padLeft) % layer.strideX;
      sub.height = size(layer.height, layer.strideY, sub.offsetY);
      sub.width = size(layer.width, layer.strideX, sub.offsetX);
      out.push_back(sub);
    }
  }
  return out;
}

std::vector<SubFilter> filterPieces(int32_t height, int32_t width, MceAlgorithm algorithm) {
  const int32_t largest = algorithm == MceAlgorithm::Winograd ? 1 : 7;
  if (height <= largest && width <= largest) return {{0, 0, height, width}};
  const int32_t rows = height == 1 ? 1 : 3, columns = width == 1 ? 1 : 3;
  std::vector<SubFilter> out;
  for (int32_t y = 0; y < height; y += rows) {
    for (int32_t x = 0; x < width; x += columns) out.push_back({y, x, rows, columns});
  }
  return out;
}

std::vector<int16_t> streamOrder(const LayerWeights& layer, const Variant& variant, int32_t output,
                                 int32_t first, int32_t count) {
  std::vector<int16_t> out;
  switch (layer.operation) {
    case MceOperation::Depthwise:
      depthwiseOrder(layer, output, out);
      break;
    case MceOperation::FullyConnected:
      vectorOrder(layer, variant, output, first, count, out);
      break;
    case MceOperation::Convolution:
      if (layer.algorithm == MceAlgorithm::Winograd) {
        winogradOrder(layer, output, first, count, out);
      } else {
        directOrder(layer, variant, output, first, count, out);
      }
      break;
  }
  return out;
}

int32_t ogsInUse(const Variant& variant, MceOperation operation, int32_t stripeOutputs) {
  const int32_t all = operation == MceOperation::Depthwise ? variant.banks() : variant.ogs();
  return std::min(all, roundUp(stripeOutputs, variant.banks()));
}

Result<EncodedWeights> encodeWeights(const LayerWeights& layer, const Variant& variant,
                                     const WeightSplit& split) {
  const int32_t ogs = ogsInUse(variant, layer.operation, split.stripeOutputs);
  const int32_t stripes = divideUp(layer.outputs, split.stripeOutputs);
  const int32_t inputs = layer.operation == MceOperation::FullyConnected
                             ? roundUp(layer.inputs, kVectorProductInputs)
                             : layer.inputs;
  const int32_t perIteration =
      layer.operation == MceOperation::Depthwise ? inputs : std::min(split.iterationInputs, inputs);
  EncodedWeights out;
  out.iterations = layer.operation == MceOperation::Depthwise ? 1 : divideUp(inputs, perIteration);

  // Streams by stripe, iteration, OG.
  std::vector<std::vector<uint8_t>> streams;
  size_t longest = 0;
  for (int32_t stripe = 0; stripe < stripes; ++stripe) {
    const int32_t first = stripe * split.stripeOutputs;
    const int32_t end = std::min(first + split.stripeOutputs, layer.outputs);
    for (int32_t iteration = 0; iteration < out.iterations; ++iteration) {
      for (int32_t og = 0; og < ogs; ++og) {
        WeightEncoder encoder(variant.igs());
        for (int32_t output = first + og; output < end; output += ogs) {
          OfmWeights ofm;
          ofm.bias = layer.biases[static_cast<size_t>(output)];
          ofm.scale = layer.scales[static_cast<size_t>(output)];
          ofm.weights = streamOrder(layer, variant, output, iteration * perIteration,
                                    std::min(perIteration, inputs - iteration * perIteration));
          CARINA_RETURN_IF_ERROR(encoder.append(ofm));
        }
        longest = std::max(longest, encoder.bytes().size());
        streams.push_back(encoder.bytes());
      }
    }
  }

  // The OGs of a bank follow each other; the banks alternate every 16 bytes.
  constexpr size_t kUnit = 16;
  const size_t length = (longest + kUnit - 1) / kUnit * kUnit;
  const auto banks = static_cast<size_t>(variant.banks());
  const auto perBank = static_cast<size_t>(ogs) / banks;
  out.bankBytes = static_cast<int64_t>(perBank * length);
  out.stripeBytes = out.bankBytes * static_cast<int64_t>(banks);
  out.bytes.assign(static_cast<size_t>(out.stripeBytes) * static_cast<size_t>(stripes * out.iterations), 0);
  for (size_t i = 0; i < streams.size(); ++i) {
    const size_t stripe = i / static_cast<size_t>(ogs), og = i % static_cast<size_t>(ogs);
    const size_t start =
        stripe * static_cast<size_t>(out.stripeBytes) + og / banks * length * banks + og % banks * kUnit;
    for (size_t at = 0; at < streams[i].size(); ++at) {
      out.bytes[start + at / kUnit * kUnit * banks + at % kUnit] = streams[i][at];
    }
  }
  return out;
}

}  // namespace carina::ethosn
