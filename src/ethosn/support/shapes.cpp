// SPDX-License-Identifier: Apache-2.0
// Rules of operators that move data, and of inputs, outputs and constants.
#include <algorithm>
#include <numeric>

#include "ethosn/support/rule.hpp"

namespace carina::ethosn::support {
namespace {

uint64_t roundUp(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

uint64_t divideUp(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

/// Size in DRAM in NHWCB.
uint64_t brickBytes(const Shape& shape) {
  return shape[0] * roundUp(shape[1], 8) * roundUp(shape[2], 8) * roundUp(shape[3], 16);
}

Rules input() {
  return join({batchIsOne(), depthFits("Input layer"), eightBits("Input layer"),
               channelsLast("Input layer must be NHWC or NHWCB"), oneInputScale("Input layer"),
               outputIsExpected(), inputZeroPointFits()});
}

Rules output() {
  return join({batchIsOne(),
               depthFits("Input layer"),
               eightBits("Output layer's input"),
               channelsLast("An Output layer's input must be NHWC or NHWCB"),
               {{kUnsupported,
                 [](Context& c) {
                   return c.operation().outputFormat == DataFormat::Nhwc ||
                          c.operation().outputFormat == DataFormat::Nhwcb;
                 },
                 "An Output layer's format must be NHWC or NHWCB"}},
               oneInputScale("Output layer"),
               inputZeroPointFits()});
}

Rules standalonePadding() {
  const std::string in = "Input to standalone padding";
  return join({batchIsOne(),
               depthFits(in),
               eightBits(in),
               channelsLast(in + " must be NHWC OR NHWCB"),
               inputZeroPointFits(),
               {{kUnsupported, [](Context& c) { return elements(c.input().shape) != 0; },
                 "Output tensor would be empty"}},
               outputIsExpected(),
               {{kUnsupported,
                 [](Context& c) {
                   const Padding& pad = c.operation().padding;
                   return std::max({pad.top, pad.bottom, pad.left, pad.right}) <= 7;
                 },
                 "Padding not supported"}}});
}

bool sameBesidesAxis(Context& c) {
  for (const TensorInfo& info : c.query.inputs) {
    for (uint32_t dim = 0; dim < 4; ++dim) {
      if (dim != c.operation().axis && info.shape[dim] != c.input().shape[dim]) return false;
    }
  }
  return true;
}

Rules perInputOfConcatenation() {
  return {{kUnsupported, [](Context& c) { return c.eachInput().shape[0] == 1; }, "Batch size must be 1",
           Scope::PerInput},
          {kUnsupported,
           [](Context& c) {
             const uint64_t chunk = uint64_t{64} * c.eachInput().shape[3];
             const auto sram = static_cast<uint64_t>(c.target.sramBytes);
             return c.eachInput().shape[2] == 1 || chunk <= sram || c.says(chunk, sram);
           },
           "Input tensors: Tensor max depth cannot fit in SRAM ({} / {})", Scope::PerInput},
          {kUnsupported, [](Context& c) { return isEightBits(c.eachInput().type); },
           "Input tensors must be UINT8_QUANTIZED or INT8_QUANTIZED", Scope::PerInput},
          {kUnsupported, [](Context& c) { return isChannelsLast(c.eachInput()); },
           "Input to concatenation must be NHWC or NHWCB", Scope::PerInput}};
}

Rules concatenation() {
  return join(
      {{{kUnsupported, [](Context& c) { return !c.query.inputs.empty(); }, "Must have at least one input"}},
       perInputOfConcatenation(),
       {{kUnsupported, [](Context& c) { return c.operation().axis < 4; },
         "Concatenation axis must refer to a valid dimension (0-3)"},
        {kUnsupported, sameBesidesAxis,
         "Input tensors must have the same size along all dimensions except the concatenation dimension"},
        {kUnsupported,
         [](Context& c) {
           return std::none_of(c.query.inputs.begin(), c.query.inputs.end(),
                               [](const TensorInfo& info) { return info.quantization.dim.has_value(); });
         },
         "Quantization Dim should not be used on any Inputs of Concat"}},
       oneOutputScale("Concatenation"),
       {{kUnsupported,
         [](Context& c) { return zeroPointFits(c.eachInput().type, c.eachInput().quantization); },
         "Zero point out of range for at least one input info", Scope::PerInput},
        {kUnsupported,
         [](Context& c) { return zeroPointFits(c.eachInput().type, c.operation().outputQuantization); },
         "Zero point out of range for concatInfo", Scope::PerInput}},
       {{kEstimate,
         [](Context& c) {
           return std::all_of(c.query.inputs.begin(), c.query.inputs.end(), [&c](const TensorInfo& info) {
             return canRequantize(info.quantization.scales[0], c.operation().outputQuantization.scales[0]);
           });
         },
         "Output scales must be bigger than input scale / 128"}},
       outputDepthFits("Output of concatenation"),
       outputIsExpected(),
       {{kEstimate, [](Context& c) { return c.operation().axis != 0; },
         "Concatenation cannot be performed along batch axis (axis 0)"}}});
}

Rules split() {
  return join(
      {batchIsOne(),
       depthFits("Input tensor"),
       {{kUnsupported, [](Context& c) { return !c.operation().sizes.empty(); },
         "Must have at least 1 output"}},
       eightBits("Input tensor"),
       channelsLast("Input tensor must be NHWC or NHWCB"),
       {{kUnsupported, [](Context& c) { return c.operation().axis < 4; },
         "Axis must refer to a valid dimension (0-3)"},
        {kUnsupported,
         [](Context& c) {
           const auto& sizes = c.operation().sizes;
           return std::accumulate(sizes.begin(), sizes.end(), 0U) == c.input().shape[c.operation().axis];
         },
         "Sizes must sum to the total size of the input tensor along the split axis"}},
       oneInputScale("Split"),
       inputZeroPointFits(),
       {{kUnsupported,
         [](Context& c) { return !c.query.outputs || c.query.outputs->size() == c.operation().sizes.size(); },
         "Provided outputInfos array has incorrect size"}},
       {{kUnsupported,
         [](Context& c) {
           const Shape& shape = c.outputs()[c.index].shape;
           const uint64_t chunk = uint64_t{64} * shape[3];
           const auto sram = static_cast<uint64_t>(c.target.sramBytes);
           return shape[2] == 1 || chunk <= sram || c.says(chunk, sram);
         },
         "Output of split: Tensor max depth cannot fit in SRAM ({} / {})", Scope::PerOutput},
        {kUnsupported,
         [](Context& c) {
           if (!c.query.outputs) return true;
           const TensorInfo& given = (*c.query.outputs)[c.index];
           return elements(given.shape) == 0 || given == c.outputs()[c.index] || c.says(c.index);
         },
         "Provided outputInfo at index {} is incorrect", Scope::PerOutput}},
       {{kUnsupported, [](Context& c) { return c.operation().axis != 0; },
         "Split cannot be performed along batch axis (axis 0)"}}});
}

Rules reshape() {
  return join(
      {{{kUnsupported, [](Context& c) { return c.input().shape[0] == 1 && c.operation().newShape[0] == 1; },
         "Batch size must be 1"}},
       depthFits("Input to reshape"),
       {{kUnsupported,
         [](Context& c) {
           const uint64_t bytes = elements(c.input().shape) * (c.input().type == DataType::S32 ? 4 : 1);
           return bytes == elements(c.operation().newShape);
         },
         "Total elements in the input doesn't match new dimensions"}},
       oneInputScale("Reshape"),
       inputZeroPointFits(),
       outputDepthFits("Output of reshape"),
       outputIsExpected()});
}

Rules depthToSpace() {
  const std::string in = "Input to depth to space";
  return join({batchIsOne(),
               depthFits(in),
               eightBits(in),
               channelsLast("Input must be NHWC or NHWCB"),
               {{kUnsupported,
                 [](Context& c) {
                   const uint32_t block = c.operation().blockSize;
                   return block != 0 && c.input().shape[3] % (block * block) == 0;
                 },
                 "Number of channels of input must be an exact multiple of the square of the block size"}},
               oneInputScale("Depth to Space"),
               inputZeroPointFits(),
               outputIsExpected(),
               {{kEstimate, [](Context& c) { return c.operation().blockSize == 2; },
                 "Only block size of 2 is supported"}}});
}

/// Whether the two passes of a space-to-depth, split in height as far as its blocks allow, fit SRAM.
bool spaceToDepthFits(Context& c) {
  const auto banks = static_cast<uint64_t>(c.target.variant->banks());
  const uint64_t block = c.operation().blockSize, height = c.input().shape[1], width = c.input().shape[2],
                 channels = c.input().shape[3];
  uint64_t used = std::min(banks, block * channels);
  while (used > 1 && block * channels % used != 0) --used;
  if (used == 0) return true;
  uint64_t stripe = height;
  for (uint64_t divisor = height; divisor >= 1; --divisor) {
    if (height % divisor == 0 && height / divisor % block == 0) {
      stripe = height / divisor;
      break;
    }
  }
  const uint64_t first = divideUp(width * channels, used * 8) * divideUp(stripe, block * 8) * 64;
  const uint64_t second =
      divideUp(block * channels, used * 8) * divideUp(width * stripe, block * block * 8) * 64;
  const uint64_t bank = first + std::max(first, second) * (block - 1) + second;
  return bank * banks <= static_cast<uint64_t>(c.target.sramBytes);
}

Rules spaceToDepth() {
  const std::string in = "Input to space to depth";
  return join({depthFits(in),
               eightBits(in),
               {{kUnsupported, [](Context& c) { return c.operation().blockSize > 1; },
                 "Block size must be larger than 1"},
                {kUnsupported,
                 [](Context& c) {
                   return c.input().shape[1] % c.operation().blockSize == 0 &&
                          c.input().shape[2] % c.operation().blockSize == 0;
                 },
                 "Input width and height must be a multiple of the block size"}},
               oneInputScale("Space to Depth", kEstimate),
               inputZeroPointFits(),
               outputDepthFits("Output of space to depth"),
               {{kUnsupported,
                 [](Context& c) { return !c.query.outputs || c.query.outputs->at(0) == c.outputs()[0]; },
                 "Provided outputInfo is incorrect"},
                {kUnsupported, spaceToDepthFits, "The tensor is too large"},
                {kEstimate, [](Context&) { return false; }, ""}}});
}

/// Upper bound on the size of a 1x1 depthwise convolution's weights.
uint64_t identityWeightBytes(const Target& target, uint64_t channels) {
  const auto banks = static_cast<uint64_t>(target.variant->banks());
  const uint64_t coded = ((1 + banks / 8) * 9 + 7) / 8;
  constexpr uint64_t kParameterBits = 17 + 1 + 3 + 3 + 1 + 1 + 5 + 5 + 3 + 32 * 9;
  const uint64_t perChannel = coded + (kParameterBits + 7) / 8 + 14;
  return roundUp(perChannel * divideUp(channels, banks), 16) * banks;
}

/// Transposes are not split.
bool transposeFits(Context& c) {
  const Shape& shape = c.input().shape;
  const auto& p = c.operation().permutation;
  const auto sram = static_cast<uint64_t>(c.target.sramBytes);
  const auto is = [&p](uint32_t a, uint32_t b, uint32_t d) { return p[1] == a && p[2] == b && p[3] == d; };
  if (is(1, 2, 3)) return true;
  if (is(2, 3, 1) || is(3, 1, 2)) return brickBytes(shape) <= sram;
  const Shape seen = is(2, 1, 3) ? shape : Shape{1, shape[2], shape[3], shape[1]};
  return 2 * brickBytes(seen) + identityWeightBytes(c.target, seen[3]) +
             static_cast<uint64_t>(kPleKernelMaxBytes * c.target.variant->banks()) <=
         sram;
}

Rules transpose() {
  const std::string in = "Input to transpose";
  return join({depthFits(in),
               eightBits(in),
               channelsLast("Input must be NHWC or NHWCB"),
               {{kUnsupported, [](Context& c) { return c.operation().permutation[0] == 0; },
                 "Transpose of batch(0) axis is not allowed"},
                {kUnsupported,
                 [](Context& c) {
                   const auto& p = c.operation().permutation;
                   return std::all_of(p.begin(), p.end(), [](uint32_t axis) { return axis <= 3; });
                 },
                 "Transpose of dimensions > 3 are not allowed"},
                {kUnsupported,
                 [](Context& c) {
                   auto p = c.operation().permutation;
                   std::sort(p.begin(), p.end());
                   return std::adjacent_find(p.begin(), p.end()) == p.end();
                 },
                 "Transpose axes must be unique"}},
               oneInputScale("Transpose", kEstimate),
               inputZeroPointFits(),
               outputDepthFits("Output of transpose"),
               outputIsExpected(),
               {{kUnsupported, transposeFits, "The tensors are too large"}}});
}

template <size_t dim>
bool isDoubled(Context& c) {
  const uint32_t doubled = 2 * c.input().shape[dim], wanted = c.operation().newShape[dim];
  return wanted == doubled || wanted == doubled - 1;
}

Rules resize() {
  const std::string in = "Input to resize";
  return join({batchIsOne(),
               depthFits(in),
               eightBits(in),
               channelsLast("Input must be NHWC or NHWCB"),
               {{kUnsupported, isDoubled<1>, "Requested height isn't supported"},
                {kUnsupported, isDoubled<2>, "Requested width isn't supported"}},
               inputZeroPointFits(),
               outputZeroPointFits("Zero point out of range for resizeInfo"),
               outputIsExpected()});
}

Rules estimateOnly() {
  return join({{{kUnsupported,
                 [](Context& c) {
                   const auto& infos = c.operation().estimateOutputs;
                   return std::all_of(infos.begin(), infos.end(), [](const TensorInfo& info) {
                     return zeroPointFits(info.type, info.quantization);
                   });
                 },
                 "Zero point out of range for at least one output info in EstimateOnlyInfo"}},
               {{kUnsupported,
                 [](Context& c) {
                   if (!c.query.outputs) return true;
                   if (c.query.outputs->size() > c.outputs().size()) return false;
                   for (size_t i = 0; i < c.query.outputs->size(); ++i) {
                     const TensorInfo& given = (*c.query.outputs)[i];
                     if (elements(given.shape) != 0 && given != c.outputs()[i]) return false;
                   }
                   return true;
                 },
                 "Provided outputInfo is incorrect"}}});
}

}  // namespace

Rules shapeRules(Operator op) {
  switch (op) {
    case Operator::Input:
      return input();
    case Operator::Output:
      return output();
    case Operator::Constant:
      return join(
          {depthFits("Constant layer"), inputZeroPointFits("Zero point out of range for constant info")});
    case Operator::StandalonePadding:
      return standalonePadding();
    case Operator::Concatenation:
      return concatenation();
    case Operator::Split:
      return split();
    case Operator::Reshape:
      return reshape();
    case Operator::DepthToSpace:
      return depthToSpace();
    case Operator::SpaceToDepth:
      return spaceToDepth();
    case Operator::Transpose:
      return transpose();
    case Operator::Resize:
      return resize();
    default:
      return estimateOnly();
  }
}

}  // namespace carina::ethosn::support
