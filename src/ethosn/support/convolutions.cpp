// SPDX-License-Identifier: Apache-2.0
// Rules of operators that run on the MCE with their own weights.
#include <algorithm>

#include "ethosn/support/rule.hpp"

namespace carina::ethosn::support {
namespace {

const Shape& kernel(Context& c) {
  return c.operation().weights.shape;
}

bool isKernelSize(uint32_t size) {
  constexpr uint32_t kSizes[] = {1, 2, 3, 5, 7, 9};
  return std::find(std::begin(kSizes), std::end(kSizes), size) != std::end(kSizes);
}

bool hasStride(Context& c, uint32_t smallest) {
  const Extent& stride = c.operation().stride;
  return stride.x == stride.y && stride.x >= smallest && stride.x <= 2;
}

bool biasIsRow(Context& c, uint32_t length) {
  const Shape& bias = c.operation().bias.shape;
  return bias[0] * bias[1] * bias[2] == 1 && bias[3] == length;
}

bool biasScaleIsProduct(Context& c) {
  return c.operation().bias.quantization.scales == productScales(c.input(), c.operation().weights);
}

/// How an operator is named in its texts.
struct Words {
  std::string what;        // "conv"
  std::string weights;     // in the rule on the weights' type
  std::string either;      // "or", or "OR" where the text has that
  std::string title;       // "Convolution"
  std::string scaleTitle;  // in the rule on the overall scale
};

Rules constantRules(const Words& words, DataFormat format, const std::string& formatName) {
  const auto isFormat = format == DataFormat::Hwio
                            ? [](Context& c) { return c.operation().weights.format == DataFormat::Hwio; }
                            : +[](Context& c) { return c.operation().weights.format == DataFormat::Hwim; };
  return {{kUnsupported, [](Context& c) { return isEightBits(c.operation().weights.type); },
           words.weights + " must be UINT8_QUANTIZED or INT8_QUANTIZED"},
          {kUnsupported, isFormat, "Weights for " + words.what + " must be " + formatName},
          {kUnsupported, [](Context& c) { return c.operation().bias.type == DataType::S32; },
           "Bias for " + words.what + " must be INT32_QUANTIZED"},
          {kUnsupported, [](Context& c) { return c.operation().bias.format == DataFormat::Nhwc; },
           "Bias for " + words.what + " must be NHWC"}};
}

Rules biasLength(bool perInput) {
  const auto holds = perInput ? [](Context& c) { return biasIsRow(c, kernel(c)[2] * kernel(c)[3]); }
                              : +[](Context& c) { return biasIsRow(c, kernel(c)[3]); };
  return {{kUnsupported, holds, "Invalid bias tensor dimensions"}};
}

/// All rules that precede those specific to one operator.
Rules structure(const Words& words, DataFormat format, const std::string& formatName) {
  const std::string in = "Input to " + words.what, out = "Output of " + words.what;
  return join({batchIsOne(),
               depthFits(in),
               eightBits(in),
               channelsLast(in + " must be NHWC " + words.either + " NHWCB"),
               constantRules(words, format, formatName),
               biasLength(format == DataFormat::Hwim),
               {{kUnsupported, [](Context& c) { return kernel(c)[2] == c.input().shape[3]; },
                 "Weights input channels dimension (I) must match Input channels dimension (C)"},
                {kUnsupported,
                 [](Context& c) {
                   return kernel(c)[0] != 0 && kernel(c)[1] != 0 && c.operation().stride.x != 0 &&
                          c.operation().stride.y != 0;
                 },
                 "Invalid kernel/stride parameters"},
                {kUnsupported, [](Context& c) { return elements(c.outputs()[0].shape) != 0; },
                 "Output tensor would be empty"}},
               outputDepthFits(out),
               biasScalesMatch(words.title),
               weightScalesMatch(words.title),
               oneInputScale(words.title),
               oneOutputScale(words.title),
               outputIsExpected()});
}

constexpr const char* kKernelText =
    "Unsupported kernel size. Width({})/height({}) must be in {{ 1, 2, 3, 5, 7, 9 }}";
constexpr const char* kStrideText = "Unsupported stride. Stride X and Y must be equal and in {{ 1, 2 }}";

Rule kernelSizes() {
  return {kEstimate,
          [](Context& c) {
            return (isKernelSize(kernel(c)[0]) && isKernelSize(kernel(c)[1])) ||
                   c.says(kernel(c)[1], kernel(c)[0]);
          },
          kKernelText};
}

Rules convolution() {
  const Words words{"conv", "Weight for conv", "or", "Convolution", "Convolution"};
  return join(
      {structure(words, DataFormat::Hwio, "HWIO"),
       weightZeroPointFits(kUnsupported),
       inputZeroPointFits(),
       outputZeroPointFits("Zero point out of range for convInfo"),
       {{kEstimate, [](Context& c) { return c.operation().bias.quantization.zeroPoint == 0; },
         "Bias for conv must have quantization parameters with zero point of 0"},
        {kEstimate, biasScaleIsProduct,
         "Bias for conv must have quantization parameters with scale of input scale x weight scale"},
        kernelSizes(),
        {kEstimate, [](Context& c) { return hasStride(c, 1); }, kStrideText},
        {kEstimate,
         [](Context& c) { return c.operation().stride.x == 1 || (kernel(c)[0] <= 7 && kernel(c)[1] <= 7); },
         "Unsupported stride for kernel width/height > 7. Stride X and Y must be 1"}},
       paddingFits(false),
       overallScaleFits(words.scaleTitle)});
}

Rules depthwise() {
  const Words words{"depthwise conv", "Weight for conv", "OR", "Depthwise Convolution",
                    "Depthwise Convolution"};
  return join(
      {structure(words, DataFormat::Hwim, "HWIM"),
       {{kEstimate, [](Context& c) { return kernel(c)[3] == 1 || kernel(c)[2] == 1; },
         "If channel multiplier > 1 the weights input channels dimension must be 1"}},
       weightZeroPointFits(kUnsupported),
       inputZeroPointFits(),
       outputZeroPointFits("Zero point out of range for convInfo"),
       {{kEstimate, biasScaleIsProduct,
         "Bias for depthwise conv must have quantization parameters with zero point of 0 and scale of "
         "input scale x weight scale"},
        {kEstimate,
         [](Context& c) {
           return (kernel(c)[0] == kernel(c)[1] && isKernelSize(kernel(c)[0])) ||
                  c.says(kernel(c)[1], kernel(c)[0]);
         },
         kKernelText},
        {kEstimate, [](Context& c) { return hasStride(c, 1); }, kStrideText},
        {kEstimate,
         [](Context& c) { return c.operation().stride.x == 1 || kernel(c)[0] != 1 || kernel(c)[1] != 1; },
         "Unsupported stride >1 with kernel size 1x1."}},
       paddingFits(false),
       overallScaleFits(words.scaleTitle)});
}

Rules transposeConvolution() {
  const Words words{"transpose conv", "Weights for transpose conv", "or", "Transpose Convolution",
                    "Tranpose Convolution"};
  return join(
      {structure(words, DataFormat::Hwio, "HWIO"),
       weightZeroPointFits(kEstimate),
       inputZeroPointFits(),
       outputZeroPointFits("Zero point out of range for convInfo"),
       {{kEstimate,
         [](Context& c) { return c.operation().bias.quantization.zeroPoint == 0 && biasScaleIsProduct(c); },
         "Bias for transpose conv must have quantization parameters with zero point of 0 and "
         "scale of input scale x weight scale"},
        kernelSizes(),
        {kEstimate, [](Context& c) { return hasStride(c, 2); },
         "Unsupported stride. Stride X and Y must be equal to 2"}},
       paddingFits(true),
       {{kEstimate,
         [](Context& c) {
           return c.operation().padding != Padding{} || (kernel(c)[0] <= 7 && kernel(c)[1] <= 7);
         },
         "Padding must be SAME for kernel > 7x7."}},
       overallScaleFits(words.scaleTitle)});
}

}  // namespace

Rules convolutionRules(Operator op) {
  if (op == Operator::Convolution) return convolution();
  return op == Operator::DepthwiseConvolution ? depthwise() : transposeConvolution();
}

Rules fullyConnectedRules() {
  const Words words{"fully connected", "Weights for fully connected", "or", "Fully Connected",
                    "Fully Connected"};
  const std::string in = "Input to fully connected";
  Rules constants = constantRules(words, DataFormat::Hwio, "HWIO");
  const Rules bias(constants.begin() + 2, constants.end());
  constants.resize(2);
  return join(
      {batchIsOne(),
       depthFits(in),
       eightBits(in),
       channelsLast("Invalid data format. Only NHWC and NHWCB are supported for fully connected"),
       constants,
       {{kUnsupported, [](Context& c) { return kernel(c)[0] == 1 && kernel(c)[1] == 1; },
         "Weights tensor must have H and W set to 1 as these dimensions are not needed."},
        {kUnsupported,
         [](Context& c) {
           const Shape& shape = c.input().shape;
           return kernel(c)[2] == shape[1] * shape[2] * shape[3];
         },
         "Weights tensor must have I dimension equal to the number of channels of the input tensor."}},
       bias,
       biasLength(false),
       {{kUnsupported,
         [](Context& c) {
           return c.operation().weights.quantization.scales.size() == 1 &&
                  c.operation().bias.quantization.scales.size() == 1;
         },
         "Multiple quantization scales is not supported for FullyConnected operation"}},
       oneInputScale(words.title),
       weightZeroPointFits(kEstimate),
       inputZeroPointFits(),
       outputZeroPointFits("Zero point out of range for fullyConnectedInfo"),
       outputDepthFits("Output of fully connected"),
       outputIsExpected(),
       {{kEstimate, [](Context& c) { return c.input().shape[1] == 1 && c.input().shape[2] == 1; },
         "Input to fully connected is expected to be one dimensional using the channels dimension."},
        {kEstimate,
         [](Context& c) { return c.operation().bias.quantization.zeroPoint == 0 && biasScaleIsProduct(c); },
         "Bias for fully connected must have quantization parameters with zero point of 0 and scale of "
         "input scale x weight scale"}},
       overallScaleFits(words.scaleTitle)});
}

}  // namespace carina::ethosn::support
