// SPDX-License-Identifier: Apache-2.0
// The weights of a layer as stored in DRAM: which weights each output generator (OG) needs in which order,
// and how the streams of the OGs are distributed over the SRAM banks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "ethosn/stream/command_stream.hpp"
#include "ethosn/targets/variant.hpp"
#include "ethosn/weights/weight_encoder.hpp"

namespace carina::ethosn {

/// Winograd: for stride 1, not depthwise, not fully connected; the stream then holds 3x3, 3x1 or 1x3 pieces
/// of the filter.
enum class MceAlgorithm : uint8_t { Direct, Winograd };

/// Inputs of a vector product are padded to a multiple of this.
inline constexpr int32_t kVectorProductInputs = 1024;

/// Filter, biases and scales of a layer.
struct LayerWeights {
  MceOperation operation = MceOperation::Convolution;
  MceAlgorithm algorithm = MceAlgorithm::Direct;
  int32_t height = 1, width = 1;     // of the filter
  int32_t inputs = 1, outputs = 1;   // channels; equal for depthwise
  int32_t strideY = 1, strideX = 1;  // with stride 2 the IFM is interleaved as four sub-maps
  int32_t padTop = 0, padLeft = 0;   // determine which sub-map comes first
  std::vector<int16_t>
      weights;  // minus the zero point; [height][width][inputs][outputs], depthwise without outputs
  std::vector<int32_t> biases;   // one per output
  std::vector<OfmScale> scales;  // one per output

  int16_t at(int32_t y, int32_t x, int32_t input, int32_t output) const;
};

/// One of the filters into which a strided filter is decomposed, in the order of the sub-maps.
struct SubFilter {
  int32_t offsetY = 0, offsetX = 0;  // of its first tap in the whole filter
  int32_t height = 1, width = 1;     // 0 if the filter is smaller than the stride
};
std::vector<SubFilter> subFilters(const LayerWeights& layer);

/// Filters above 7 elements (Winograd: above 1) are encoded as pieces of 3x3, or of 3x1 or 1x3 if one side is
/// 1; others are one piece.
std::vector<SubFilter> filterPieces(int32_t height, int32_t width, MceAlgorithm algorithm);

/// Weights of `output` for the inputs [first, first + count), in the order in which the MCE reads them.
std::vector<int16_t> streamOrder(const LayerWeights& layer, const Variant& variant, int32_t output,
                                 int32_t first, int32_t count);

/// How a layer is cut: output channels per stripe, and input channels (not interleaved) per iteration.
struct WeightSplit {
  int32_t stripeOutputs = 0, iterationInputs = 0;
};

struct EncodedWeights {
  std::vector<uint8_t> bytes;  // stripe after stripe, all of the same size
  int64_t stripeBytes = 0;
  int64_t bankBytes = 0;  // of a stripe, in each SRAM bank
  int32_t iterations = 1;

  /// Offset of a stripe's weights for an iteration over inputs.
  int64_t offset(int32_t stripe, int32_t iteration) const {
    return (int64_t{stripe} * iterations + iteration) * stripeBytes;
  }
};

/// Number of OGs over which the channels of a stripe are distributed: channel o goes to OG o mod this number.
int32_t ogsInUse(const Variant& variant, MceOperation operation, int32_t stripeOutputs);

/// The stream of every iteration contains the biases; the MCE adds them once, in its first or its last
/// iteration. Fails if an output channel has more weights than a stream can represent.
Result<EncodedWeights> encodeWeights(const LayerWeights& layer, const Variant& variant,
                                     const WeightSplit& split);

}  // namespace carina::ethosn
