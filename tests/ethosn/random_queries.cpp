// SPDX-License-Identifier: Apache-2.0
#include "ethosn/random_queries.hpp"

#include <algorithm>

namespace carina::ethosn::test {
namespace {

class Dice {
 public:
  explicit Dice(std::mt19937& random) : random_(random) {}

  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  bool one(uint32_t in) { return below(in) == 0; }
  template <typename T>
  T of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<uint32_t>(choices.size())));
  }

 private:
  std::mt19937& random_;
};

uint32_t size(Dice& dice) {
  switch (dice.below(8)) {
    case 0:
      return dice.of({7U, 8U});
    case 1:
      return 100 + dice.below(400);
    default:
      return 1 + dice.below(40);
  }
}

uint32_t channels(Dice& dice) {
  switch (dice.below(12)) {
    case 0:
      return dice.of({7168U, 7169U, 12288U, 12289U, 16384U, 16385U, 32768U, 32769U});
    case 1:
      return 64 + dice.below(1000);
    case 2:
      return 4 * (1 + dice.below(30));
    case 3:
      return 1;
    default:
      return 1 + dice.below(64);
  }
}

Quantization quantization(Dice& dice, DataType type) {
  Quantization out;
  out.zeroPoint = static_cast<int32_t>(dice.below(120)) - (type == DataType::S8 ? 60 : 0);
  if (dice.one(80)) out.zeroPoint = dice.of({-129, -128, -1, 0, 127, 128, 255, 256});
  out.scales = {dice.of({0.5F, 0.25F, 1.0F, 0.0123F, 0.1F, 2.0F})};
  if (dice.one(60)) out.scales = {dice.of({64.0F, 0.001F, 256.0F, 1e-6F, 0.0F, -1.0F})};
  return out;
}

TensorInfo tensor(Dice& dice, DataType type) {
  TensorInfo info;
  info.shape = {dice.one(80) ? dice.of({0U, 2U}) : 1U, size(dice), size(dice), channels(dice)};
  info.type = dice.one(80) ? DataType::S32 : type;
  info.format = dice.one(80)  ? dice.of({DataFormat::Nchw, DataFormat::Hwio, DataFormat::Hwim})
                : dice.one(3) ? DataFormat::Nhwcb
                              : DataFormat::Nhwc;
  info.quantization = quantization(dice, type);
  if (dice.one(120)) info.quantization.dim = dice.below(4);
  return info;
}

void convolution(Dice& dice, SupportQuery& query, DataType type) {
  Operation& op = query.operation;
  const TensorInfo& in = query.inputs[0];
  const bool depthwise = op.op == Operator::DepthwiseConvolution, full = op.op == Operator::FullyConnected,
             transposed = op.op == Operator::TransposeConvolution;
  if (full && !dice.one(8)) query.inputs[0].shape = {1, 1, 1, in.shape[1] * in.shape[2]};
  const uint32_t kernel = dice.of({1U, 2U, 3U, 5U, 7U, 9U});
  uint32_t height = kernel, width = kernel;
  if (dice.one(5)) width = dice.of({1U, 2U, 3U, 5U, 7U, 9U});
  if (dice.one(30)) height = dice.of({0U, 4U, 6U, 8U, 10U, 11U, 30U});
  const uint32_t inputs = full ? in.shape[1] * in.shape[2] * in.shape[3] : in.shape[3];
  const uint32_t outputs = depthwise      ? (dice.one(12) ? 2U : 1U)
                           : dice.one(40) ? channels(dice)
                                          : 1 + dice.below(70);
  op.weights.shape = {full ? 1 : height, full ? 1 : width, dice.one(60) ? inputs + 1 : inputs, outputs};
  if (full && dice.one(40)) op.weights.shape[1] = 2;
  op.weights.type = dice.one(80) ? DataType::S32 : dice.of({type, DataType::S8, DataType::U8});
  op.weights.format = depthwise != dice.one(80) ? DataFormat::Hwim : DataFormat::Hwio;
  op.weights.quantization = quantization(dice, op.weights.type);
  const uint32_t length = depthwise ? inputs * outputs : outputs;
  if (!full && dice.one(4) && length < 80) {
    op.weights.quantization.dim = dice.one(20) ? dice.below(4) : depthwise ? 2U : 3U;
    const uint32_t count = dice.one(20) ? length + 1 : depthwise ? inputs : length;
    op.weights.quantization.scales.clear();
    for (uint32_t i = 0; i < count; ++i)
      op.weights.quantization.scales.push_back(dice.of({0.5F, 0.25F, 0.3F}));
  }
  op.bias.shape = {1, 1, dice.one(80) ? 2U : 1U, dice.one(80) ? length + 1 : length};
  op.bias.type = dice.one(80) ? DataType::U8 : DataType::S32;
  op.bias.format = dice.one(80) ? DataFormat::Hwio : DataFormat::Nhwc;
  op.bias.quantization = {dice.one(60) ? 1 : 0, {}, std::nullopt};
  for (float scale : op.weights.quantization.scales) {
    op.bias.quantization.scales.push_back(scale * in.quantization.scales[0]);
  }
  if (op.weights.quantization.dim && op.bias.shape[3] == op.bias.quantization.scales.size()) {
    op.bias.quantization.dim = dice.one(30) ? 2U : 3U;
  }
  if (dice.one(60)) op.bias.quantization.scales[0] *= 1.5F;
  const uint32_t stride = transposed ? 2 : 1 + dice.below(2);
  if (!full) op.stride = {dice.one(40) ? dice.below(4) : stride, dice.one(40) ? dice.below(4) : stride};
  if (full || op.stride.x == 0 || op.stride.y == 0) return;
  switch (dice.below(4)) {
    case 0:
      break;
    case 1:
      op.padding = {dice.below(9), dice.below(9), dice.below(4), dice.below(4)};
      break;
    default:
      op.padding =
          samePadding(in.shape[1], in.shape[2], {width, height}, op.stride,
                      dice.of({SamePadding::PreferAfter, SamePadding::PreferBefore, SamePadding::Symmetric}));
  }
}

void pooling(Dice& dice, SupportQuery& query) {
  Operation& op = query.operation;
  Shape& shape = query.inputs[0].shape;
  op.pooling = dice.one(3) ? PoolingType::Average : PoolingType::Max;
  const uint32_t window = op.pooling == PoolingType::Average ? dice.of({3U, 3U, 7U, 8U, 2U})
                          : dice.one(3)                      ? 1 + dice.below(19)
                                                             : 1 + dice.below(3);
  const uint32_t stride = dice.one(25) ? dice.below(4) : 1 + dice.below(2);
  op.window = {dice.one(12) ? dice.below(10) : window, window};
  op.stride = {dice.one(30) ? 1 + dice.below(3) : stride, stride};
  if (dice.one(30)) shape[2] = dice.of({416U, 417U, 418U, 419U});
  if (dice.one(20)) shape[1] = shape[2] = dice.of({60U, 61U, 100U, 130U, 128U, 150U, 3000U, 9000U});
  if (op.stride.x == 0 || op.stride.y == 0 || op.window.x == 0) return;
  switch (dice.below(5)) {
    case 0:
      op.padding = {1, 1, 1, 1};
      break;
    case 1:
      op.padding = {0, 1, 0, 1};
      break;
    case 2:
      op.padding =
          samePadding(shape[1], shape[2], op.window, {},
                      dice.of({SamePadding::PreferAfter, SamePadding::PreferBefore, SamePadding::Symmetric}));
      break;
    case 3:
      if (dice.one(3)) op.padding = {dice.below(3), dice.below(3), dice.below(3), dice.below(3)};
      break;
    default:
      if (op.pooling == PoolingType::Average) shape[1] = shape[2] = op.window.x;
  }
}

void joined(Dice& dice, SupportQuery& query, DataType type) {
  Operation& op = query.operation;
  op.axis = dice.one(40) ? 4 : dice.one(12) ? 0 : 1 + dice.below(3);
  if (op.op == Operator::Split) {
    const uint32_t whole = query.inputs[0].shape[std::min(op.axis, 3U)];
    uint32_t left = whole;
    while (left > 1 && op.sizes.size() < 4) {
      op.sizes.push_back(1 + dice.below(left));
      left -= op.sizes.back();
    }
    if (left > 0 && !dice.one(10)) op.sizes.push_back(left);
    if (dice.one(60)) op.sizes.clear();
    return;
  }
  const uint32_t count = dice.one(60) ? 0 : 1 + dice.below(4);
  query.inputs.resize(std::min<size_t>(count, 1));
  for (uint32_t i = 1; i < count; ++i) {
    TensorInfo next = tensor(dice, type);
    for (uint32_t dim = 0; dim < 4; ++dim) {
      if (dim != op.axis && !dice.one(60)) next.shape[dim] = query.inputs[0].shape[dim];
    }
    query.inputs.push_back(next);
  }
}

void shapes(Dice& dice, SupportQuery& query) {
  Operation& op = query.operation;
  Shape& shape = query.inputs[0].shape;
  op.blockSize = dice.one(4) ? 1 + dice.below(4) : 2;
  if (op.op == Operator::DepthToSpace && !dice.one(4)) shape[3] = 4 * (1 + dice.below(40));
  if (op.op == Operator::SpaceToDepth && !dice.one(5)) {
    shape[1] = op.blockSize * (1 + dice.below(100));
    shape[2] = op.blockSize * (1 + dice.below(100));
  }
  if (op.op == Operator::MeanXy && !dice.one(4)) shape[1] = shape[2] = dice.of({7U, 8U});
  if (op.op == Operator::Reshape) {
    op.newShape = {shape[0], 1, shape[1] * shape[2], shape[3]};
    if (dice.one(3)) op.newShape = {1, shape[3], shape[2], shape[1]};
    const uint64_t all = elements(shape);
    if (dice.one(5) && all < (1U << 25)) op.newShape = {1, 1, 2, static_cast<uint32_t>(all / 2)};
  }
  if (op.op == Operator::Resize) {
    op.newShape = {1, 2 * shape[1] - dice.below(2), 2 * shape[2] - dice.below(2), shape[3]};
    if (dice.one(12)) op.newShape[1] += 1;
    if (dice.one(12)) op.newShape[2] += 1;
    op.resize = dice.of({ResizeAlgorithm::NearestNeighbour, ResizeAlgorithm::Bilinear});
  }
  if (op.op == Operator::Transpose) {
    for (uint32_t i = 3; i > 1; --i) std::swap(op.permutation[i], op.permutation[1 + dice.below(i)]);
    if (dice.one(20)) op.permutation[dice.below(4)] = dice.below(6);
    if (dice.one(4)) shape = {1, 100 + dice.below(200), 100 + dice.below(200), 1 + dice.below(100)};
  }
}

void expectation(Dice& dice, SupportQuery& query) {
  // Operations that earlier rules refuse have no defined outputs.
  const Operation& op = query.operation;
  if (!dice.one(6) || op.op == Operator::Output || op.op == Operator::Constant) return;
  const uint32_t block = op.blockSize;
  if (query.inputs.empty() || op.axis > 3 || op.stride.x == 0 || op.stride.y == 0 || op.window.x == 0 ||
      block == 0)
    return;
  if (std::any_of(op.permutation.begin(), op.permutation.end(), [](uint32_t axis) { return axis > 3; }))
    return;
  query.outputs = outputsOf(op, query.inputs);
  // Arm's sizes wrap at 32 bits: a window larger than its input pools to 2^31 elements.
  const auto wraps = [](const TensorInfo& info) {
    return *std::max_element(info.shape.begin(), info.shape.end()) > (1U << 20) ||
           elements(info.shape) > UINT32_MAX / 8;
  };
  if (query.outputs->empty() || std::any_of(query.outputs->begin(), query.outputs->end(), wraps)) {
    query.outputs.reset();
    return;
  }
  TensorInfo& info = query.outputs->back();
  switch (dice.below(6)) {
    case 0:
      info.shape[1 + dice.below(3)] += 1;
      break;
    case 1:
      info.quantization.zeroPoint += 1;
      break;
    case 2:
      info = {};
      break;
    case 3:
      info.format = info.format == DataFormat::Nhwc ? DataFormat::Nhwcb : DataFormat::Nhwc;
      break;
    default:
      break;
  }
}

}  // namespace

TargetQuery randomQuery(std::mt19937& random) {
  Dice dice(random);
  TargetQuery out;
  const std::span<const Variant> variants = allVariants();
  const Variant& variant = variants[dice.below(static_cast<uint32_t>(variants.size()))];
  const int64_t each = dice.one(4) ? dice.of({32, 48, 56, 64, 128, 256}) * int64_t{1024} * variant.igs() : 0;
  out.target = *makeTarget(variant, each);
  SupportQuery& query = out.query;
  Operation& op = query.operation;
  // Operators with many rules are drawn more often.
  op.op = dice.one(2) ? dice.of({Operator::Convolution, Operator::DepthwiseConvolution, Operator::Pooling,
                                 Operator::TransposeConvolution, Operator::FullyConnected})
                      : static_cast<Operator>(dice.below(kOperators));
  const DataType type = dice.of({DataType::U8, DataType::S8});
  query.inputs = {tensor(dice, type)};
  op.outputQuantization = quantization(dice, type);
  if (dice.one(60)) op.outputQuantization.dim = 3;
  if (dice.one(60) && op.op != Operator::Concatenation) op.outputQuantization.scales = {0.5F, 0.25F};
  switch (op.op) {
    case Operator::Convolution:
    case Operator::DepthwiseConvolution:
    case Operator::TransposeConvolution:
    case Operator::FullyConnected:
      convolution(dice, query, type);
      break;
    case Operator::Pooling:
      pooling(dice, query);
      break;
    case Operator::Concatenation:
    case Operator::Split:
      joined(dice, query, type);
      break;
    case Operator::Addition:
    case Operator::Multiplication: {
      TensorInfo second = tensor(dice, dice.one(20) ? DataType::U8 : type);
      for (uint32_t dim = 0; dim < 4; ++dim) {
        if (!dice.one(25)) second.shape[dim] = query.inputs[0].shape[dim];
        if (dim > 0 && dice.one(25)) second.shape[dim] = 1;
      }
      query.inputs.push_back(second);
      break;
    }
    case Operator::StandalonePadding:
      op.padding = {dice.below(5), dice.below(5), dice.below(5), dice.one(10) ? 8 : dice.below(8)};
      break;
    case Operator::Relu:
      op.lower = static_cast<int32_t>(dice.below(200)) - 50;
      op.upper = op.lower + static_cast<int32_t>(dice.below(200)) - 20;
      break;
    case Operator::LeakyRelu:
      op.alpha = dice.of({0.01F, 0.1F, 0.5F, 0.99F});
      if (dice.one(6)) op.alpha = dice.of({0.0F, 1.0F, -0.1F, 1.5F});
      break;
    case Operator::Requantize:
      if (dice.one(3)) op.outputType = dice.of({DataType::U8, DataType::S8, DataType::S32});
      break;
    case Operator::Output:
      op.outputFormat = dice.of({DataFormat::Nhwc, DataFormat::Nhwcb, DataFormat::Nchw});
      break;
    case Operator::EstimateOnly:
      op.estimateOutputs = {tensor(dice, type), tensor(dice, type)};
      break;
    default:
      shapes(dice, query);
  }
  expectation(dice, query);
  return out;
}

}  // namespace carina::ethosn::test
