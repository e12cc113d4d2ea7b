// SPDX-License-Identifier: Apache-2.0
// Rules of elementwise operators and of the mean.
#include "ethosn/support/rule.hpp"

namespace carina::ethosn::support {
namespace {

template <size_t dim>
bool canStretch(Context& c) {
  const uint32_t a = c.input(0).shape[dim], b = c.input(1).shape[dim];
  return a == b || a == 1 || b == 1;
}

/// `to`: "to addition"; `title`: "Addition".
Rules binary(const std::string& to, const std::string& title) {
  return join(
      {batchIsOne(),
       depthFits("Input0 " + to),
       depthFits("Input1 " + to, 1),
       inputZeroPointFits("Zero point out of range for input0 info"),
       inputZeroPointFits("Zero point out of range for input1 info", 1),
       {{kUnsupported, canStretch<1>, "Height must be either equal or one of the tensor's height must be 1"},
        {kUnsupported, canStretch<2>, "Width must be either equal or one of the tensor's height must be 1"},
        {kUnsupported, canStretch<3>,
         "Channels must be either equal or one of the tensor's height must be 1"}},
       eightBits("Input " + to),
       eightBits("Input " + to, 1),
       {{kUnsupported, [](Context& c) { return c.input(0).type == c.input(1).type; },
         "Inputs " + to + " must have the same data type"}},
       outputZeroPointFits("Zero point out of range for outputQuantizationInfo"),
       {{kUnsupported, [](Context& c) { return isChannelsLast(c.input(0)) && isChannelsLast(c.input(1)); },
         "Input to addition must be NHWC or NHWCB"},
        {kUnsupported,
         [](Context& c) { return !c.input(0).quantization.dim && !c.input(1).quantization.dim; },
         "Quantization Dim should not be used on any Inputs of " + title}},
       outputIsExpected(),
       {{kEstimate,
         [](Context& c) {
           const Shape &a = c.input(0).shape, &b = c.input(1).shape;
           return a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
         },
         "Cannot stretch along the requested dimensions."}}});
}

Rules relu() {
  const std::string in = "Input to relu";
  return join({batchIsOne(),
               depthFits(in),
               {{kUnsupported, [](Context& c) { return c.operation().lower <= c.operation().upper; },
                 "Relu has lower bound > upper bound"}},
               eightBits(in),
               channelsLast(in + " must be NHWC or NHWCB"),
               oneInputScale("Relu"),
               inputZeroPointFits(),
               outputIsExpected()});
}

Rules leakyRelu() {
  const std::string in = "Input to leaky relu";
  return join({batchIsOne(),
               depthFits(in),
               eightBits(in),
               channelsLast(in + " must be NHWC or NHWCB"),
               oneInputScale("Leaky Relu"),
               oneOutputScale("Leaky Relu"),
               inputZeroPointFits(),
               outputZeroPointFits("Zero point out of range for leakyReluInfo"),
               outputIsExpected(),
               {{kEstimate,
                 [](Context& c) { return !(c.operation().alpha >= 1.0F) && !(c.operation().alpha <= 0.0F); },
                 "Leaky relu alpha must be less than 1 and greater than 0"}}});
}

Rules requantize() {
  const std::string in = "Input to requantize";
  return join({batchIsOne(),
               depthFits(in),
               eightBits(in),
               channelsLast(in + " must be NHWC or NHWCB"),
               oneInputScale("Requantize"),
               oneOutputScale("Requantize"),
               {{kEstimate,
                 [](Context& c) {
                   return canRequantize(c.input().quantization.scales[0],
                                        c.operation().outputQuantization.scales[0]);
                 },
                 "Output scale must be bigger than input scale / 128"}},
               inputZeroPointFits(),
               {{kUnsupported,
                 [](Context& c) {
                   return zeroPointFits(c.operation().outputType.value_or(c.input().type),
                                        c.operation().outputQuantization);
                 },
                 "Zero point out of range for requantizeInfo"},
                {kUnsupported, [](Context& c) { return isEightBits(c.outputs()[0].type); },
                 "Expected quantization output must be UINT8_QUANTIZED or INT8_QUANTIZED"}},
               outputIsExpected()});
}

Rules reinterpret() {
  const std::string in = "Input to reinterpret quantization";
  return join({batchIsOne(), depthFits(in), eightBits(in), channelsLast(in + " must be NHWC or NHWCB"),
               inputZeroPointFits(),
               outputZeroPointFits("Zero point out of range for reinterpretQuantizationInfo"),
               outputIsExpected()});
}

Rules unary(const std::string& in, const std::string& title) {
  return join({batchIsOne(), depthFits(in), eightBits(in), oneInputScale(title), inputZeroPointFits()});
}

Rules mean() {
  return join({unary("Input to MeanXy layer", "Mean"),
               {{kUnsupported,
                 [](Context& c) {
                   const Shape& shape = c.input().shape;
                   return shape[1] == shape[2] && (shape[1] == 7 || shape[1] == 8);
                 },
                 "MeanXy is supported for 7x7 and 8x8 as HeightxWidth only"}},
               outputIsExpected()});
}

}  // namespace

Rules elementwiseRules(Operator op) {
  switch (op) {
    case Operator::Addition:
      return binary("to addition", "Addition");
    case Operator::Multiplication:
      return binary("to Multiplication", "Multiplication");
    case Operator::Relu:
      return relu();
    case Operator::LeakyRelu:
      return leakyRelu();
    case Operator::Requantize:
      return requantize();
    case Operator::ReinterpretQuantization:
      return reinterpret();
    case Operator::Sigmoid:
      return join({unary("Input to sigmoid layer", "Sigmoid"), outputIsExpected()});
    case Operator::Tanh:
      return join({unary("Input to tanh layer", "tanh"), outputIsExpected()});
    default:
      return mean();
  }
}

}  // namespace carina::ethosn::support
