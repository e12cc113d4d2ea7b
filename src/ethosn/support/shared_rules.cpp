// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ethosn/support/rule.hpp"

namespace carina::ethosn::support {
namespace {

/// A conversion between NHWC and NHWCB handles 8 rows and columns of all channels at a time; a tensor one
/// element wide can be split in channels.
bool depthFitsSram(Context& context, const TensorInfo& info) {
  if (info.shape[2] == 1) return true;
  const uint64_t chunk = uint64_t{64} * info.shape[3];
  const auto sram = static_cast<uint64_t>(context.target.sramBytes);
  return chunk <= sram || context.says(chunk, sram);
}

/// The dimension along which the scales of a constant vary.
uint32_t scaleDimension(DataFormat format) {
  switch (format) {
    case DataFormat::Hwio:
    case DataFormat::Nhwc:
      return 3;
    case DataFormat::Hwim:
      return 2;
    default:
      return UINT32_MAX;
  }
}

bool dimensionIsRight(Context& context, const TensorInfo& info) {
  const uint32_t expected = scaleDimension(info.format);
  return !info.quantization.dim || *info.quantization.dim == expected || context.says(expected);
}

bool scaleCountMatches(Context& context, const TensorInfo& info) {
  if (!info.quantization.dim) return true;
  const uint32_t expected = info.shape[*info.quantization.dim];
  const size_t given = info.quantization.scales.size();
  return given == expected || context.says(expected, given);
}

Rules scalesMatch(const std::string& what, const std::string& name, bool (*dimension)(Context&),
                  bool (*count)(Context&)) {
  return {{kUnsupported, dimension, what + ": Per channel quantization axis must be {} for " + name},
          {kUnsupported, count,
           what + ": " + name +
               " must have quantization scales with same number of elements as the quantization dim. "
               "Expected: {}, got: {}."}};
}

/// The MCE pads by up to 7 elements; by more only as "same" padding of the whole tensor.
bool isPaddable(const Operation& operation, const TensorInfo& info) {
  const Padding& pad = operation.padding;
  if (std::max({pad.top, pad.bottom, pad.left, pad.right}) <= 7) return true;
  const Extent window{operation.weights.shape[1], operation.weights.shape[0]};
  for (SamePadding mode : {SamePadding::Symmetric, SamePadding::PreferBefore, SamePadding::PreferAfter}) {
    if (pad == samePadding(info.shape[1], info.shape[2], window, operation.stride, mode)) return true;
  }
  return false;
}

}  // namespace

Rules join(std::initializer_list<Rules> parts) {
  Rules out;
  for (const Rules& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

bool isChannelsLast(const TensorInfo& info) {
  return info.format == DataFormat::Nhwc || info.format == DataFormat::Nhwcb;
}

bool isEightBits(DataType type) {
  return type == DataType::U8 || type == DataType::S8;
}

bool zeroPointFits(DataType type, const Quantization& quantization) {
  switch (type) {
    case DataType::U8:
      return quantization.zeroPoint >= 0 && quantization.zeroPoint <= 255;
    case DataType::S8:
      return quantization.zeroPoint >= -128 && quantization.zeroPoint <= 127;
    case DataType::S32:
      break;
  }
  return true;
}

bool canRequantize(float inputScale, float outputScale) {
  const float ratio = inputScale * (1.0F / 128) / outputScale;
  return ratio >= 0.0F && ratio < 1.0F;
}

std::vector<float> productScales(const TensorInfo& input, const TensorInfo& weights) {
  const std::vector<float>& a = input.quantization.scales;
  const std::vector<float>& b = weights.quantization.scales;
  std::vector<float> out;
  for (size_t i = 0; i < (a.size() == 1 ? b.size() : a.size()); ++i) {
    out.push_back(a[a.size() == 1 ? 0 : i] * b[b.size() == 1 ? 0 : std::min(i, b.size() - 1)]);
  }
  return out;
}

Rules batchIsOne() {
  return {{kUnsupported,
           [](Context& c) {
             return std::all_of(c.query.inputs.begin(), c.query.inputs.end(),
                                [](const TensorInfo& info) { return info.shape[0] == 1; });
           },
           "Batch size must be 1"}};
}

Rules depthFits(const std::string& what, size_t input) {
  const auto holds = input == 0 ? [](Context& c) { return depthFitsSram(c, c.input(0)); }
                                : +[](Context& c) { return depthFitsSram(c, c.input(1)); };
  return {{kUnsupported, holds, what + ": Tensor max depth cannot fit in SRAM ({} / {})"}};
}

Rules outputDepthFits(const std::string& what) {
  return {{kUnsupported, [](Context& c) { return depthFitsSram(c, c.outputs()[0]); },
           what + ": Tensor max depth cannot fit in SRAM ({} / {})"}};
}

Rules eightBits(const std::string& what, size_t input) {
  const auto holds = input == 0 ? [](Context& c) { return isEightBits(c.input(0).type); }
                                : +[](Context& c) { return isEightBits(c.input(1).type); };
  return {{kUnsupported, holds, what + " must be UINT8_QUANTIZED or INT8_QUANTIZED"}};
}

Rules channelsLast(const std::string& text) {
  return {{kUnsupported, [](Context& c) { return isChannelsLast(c.input()); }, text}};
}

Rules oneInputScale(const std::string& what, SupportLevel level) {
  return {{level, [](Context& c) { return !c.input().quantization.dim; },
           what + ": Quantization Dim should not be used on Input"},
          {level, [](Context& c) { return c.input().quantization.scales.size() == 1; },
           what + ": Input quantization scales must have a size of 1"}};
}

Rules oneOutputScale(const std::string& what) {
  return {{kUnsupported, [](Context& c) { return !c.operation().outputQuantization.dim; },
           what + ": Quantization Dim should not be used on Output"},
          {kUnsupported, [](Context& c) { return c.operation().outputQuantization.scales.size() == 1; },
           what + ": Output quantization scales must have a size of 1"}};
}

Rules biasScalesMatch(const std::string& what) {
  return scalesMatch(
      what, "Biases", [](Context& c) { return dimensionIsRight(c, c.operation().bias); },
      [](Context& c) { return scaleCountMatches(c, c.operation().bias); });
}

Rules weightScalesMatch(const std::string& what) {
  return scalesMatch(
      what, "Weights", [](Context& c) { return dimensionIsRight(c, c.operation().weights); },
      [](Context& c) { return scaleCountMatches(c, c.operation().weights); });
}

Rules inputZeroPointFits(const std::string& text, size_t input) {
  const auto holds =
      input == 0 ? [](Context& c) { return zeroPointFits(c.input(0).type, c.input(0).quantization); }
                 : +[](Context& c) { return zeroPointFits(c.input(1).type, c.input(1).quantization); };
  return {{kUnsupported, holds, text}};
}

Rules outputZeroPointFits(const std::string& text) {
  return {{kUnsupported,
           [](Context& c) { return zeroPointFits(c.input().type, c.operation().outputQuantization); }, text}};
}

Rules weightZeroPointFits(SupportLevel level) {
  return {{level,
           [](Context& c) {
             return zeroPointFits(c.operation().weights.type, c.operation().weights.quantization);
           },
           "Zero point out of range for weights info"}};
}

Rules outputIsExpected() {
  return {{kUnsupported,
           [](Context& c) {
             if (!c.query.outputs) return true;
             const TensorInfo& given = c.query.outputs->at(0);
             return elements(given.shape) == 0 || given == c.outputs()[0];
           },
           "Provided outputInfo is incorrect"}};
}

Rules overallScaleFits(const std::string& what) {
  return {{kEstimate,
           [](Context& c) {
             const float output = c.operation().outputQuantization.scales[0];
             const std::vector<float> products = productScales(c.input(), c.operation().weights);
             return std::none_of(products.begin(), products.end(), [output](float product) {
               return product / output < 0 || product / output >= 65536.0F;
             });
           },
           what + ": Overall scale (of the input * weights / output) should be in the range (2^-32, 65536)"}};
}

Rules paddingFits(bool ofOutput) {
  const auto holds = ofOutput ? [](Context& c) { return isPaddable(c.operation(), c.outputs()[0]); }
                              : +[](Context& c) { return isPaddable(c.operation(), c.input()); };
  return {{kEstimate, holds, "Unsupported padding."}};
}

}  // namespace carina::ethosn::support
