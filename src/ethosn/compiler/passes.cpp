// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ethosn/compiler/pass_maker.hpp"

namespace carina::ethosn::compiler {
namespace {

/// Whether the pass is an MCE pass that produces all of the map, unchanged by the PLE.
bool makes(const Pass& pass, const FeatureMap& map) {
  return pass.kind == PassKind::Mce && pass.kernel.operation == PleOperation::Passthrough &&
         pass.output.storage == map.storage && pass.output.height == map.wholeHeight &&
         pass.output.width == map.wholeWidth && pass.output.channels == map.wholeChannels;
}

PleSignedness signednessOf(bool isSigned) {
  return isSigned ? PleSignedness::Signed : PleSignedness::Unsigned;
}

/// A PLE kernel multiplies by 16 bits and shifts right by 1 to 32.
Status checkPleRatio(const NetworkOperation& operation, double ratio) {
  if (ratio > 0 && ratio < 32768) return {};
  return fail(Code::HardwareLimit,
              "the ratio of scales of {} is {:.6g}, but the PLE supports only ratios between 0 and 32768",
              operatorName(operation.operation.op), ratio)
      .at(operation.name)
      .withRemedy("quantize its inputs and output to more similar ranges");
}

struct Sums {
  int64_t low = 0, high = 0;
};

/// Range of a tensor's codes, less the zero point, after multiplication: saturated to the PLE's 16 bits.
Sums rescaledReach(const TensorInfo& info, double ratioBelow, double ratioAbove) {
  const double least = info.type == DataType::S8 ? -128 : 0, zero = info.quantization.zeroPoint;
  const auto saturated = [](double x) { return static_cast<int64_t>(std::clamp(x, -32768.0, 32767.0)); };
  return {saturated((least - zero) * ratioBelow), saturated((least + 255 - zero) * ratioAbove)};
}

/// A PLE kernel sums, including the zero point, in 16 bits that wrap around.
Status checkPleSums(const NetworkOperation& operation, Sums sums, int32_t zero) {
  if (sums.low + zero >= INT16_MIN && sums.high + zero <= INT16_MAX) return {};
  return fail(
             Code::HardwareLimit,
             "the ratios of scales of {} lead to sums of {} to {} codes, which exceed the 16 bits of the PLE",
             operatorName(operation.operation.op), sums.low + zero, sums.high + zero)
      .at(operation.name)
      .withRemedy("quantize its inputs and output to more similar ranges");
}

}  // namespace

int32_t PassMaker::addStorage(Storage::Kind kind, Layout layout, int32_t h, int32_t w, int32_t c,
                              const std::string& name) {
  list_.storages.push_back({kind, layout, h, w, c, name});
  return static_cast<int32_t>(list_.storages.size()) - 1;
}

FeatureMap PassMaker::wholeMap(int32_t storage, const TensorInfo& info) const {
  FeatureMap out;
  out.storage = storage;
  out.height = out.wholeHeight = static_cast<int32_t>(info.shape[1]);
  out.width = out.wholeWidth = static_cast<int32_t>(info.shape[2]);
  out.channels = out.wholeChannels = static_cast<int32_t>(info.shape[3]);
  out.isSigned = info.type == DataType::S8;
  out.zeroPoint = info.quantization.zeroPoint;
  return out;
}

FeatureMap PassMaker::newMap(int32_t tensor, const std::string& name) {
  const TensorInfo& of = info(tensor);
  const auto size = [&of](size_t dim) { return static_cast<int32_t>(of.shape[dim]); };
  // A single pixel in bricks would be 64 times as large.
  const bool pixel = size(1) == 1 && size(2) == 1;
  const Layout layout = pixel || asRows_[static_cast<size_t>(tensor)] ? Layout::Nhwc : Layout::Nhwcb;
  return wholeMap(addStorage(Storage::Kind::Intermediate, layout, size(1), size(2), size(3), name), of);
}

FeatureMap PassMaker::between(const FeatureMap& like, int32_t h, int32_t w, int32_t c,
                              const std::string& name) {
  FeatureMap out = like;
  out.storage = addStorage(Storage::Kind::Intermediate, Layout::Nhwcb, h, w, c, name);
  out.height = out.wholeHeight = h;
  out.width = out.wholeWidth = w;
  out.channels = out.wholeChannels = c;
  out.atY = out.atX = out.atC = 0;
  out.planar = false;
  return out;
}

void PassMaker::copy(const FeatureMap& from, const FeatureMap& to, const std::string& name) {
  Pass pass;
  pass.kind = PassKind::Copy;
  pass.name = name;
  pass.inputs = {from};
  pass.output = to;
  list_.passes.push_back(pass);
}

/// The whole map in NHWC; copied if it is not stored like that.
FeatureMap PassMaker::channelsLast(const FeatureMap& map, const std::string& name) {
  const bool whole =
      map.height == map.wholeHeight && map.width == map.wholeWidth && map.channels == map.wholeChannels;
  if (whole && layoutOf(map) == Layout::Nhwc && !map.planar) return map;
  FeatureMap out = between(map, map.height, map.width, map.channels, name);
  list_.storages.back().layout = Layout::Nhwc;
  copy(map, out, name);
  return out;
}

std::vector<OfmScale> scalesOf(const NetworkOperation& operation, const Quantization& input,
                               int32_t outputs) {
  const std::vector<float>& weights = operation.operation.weights.quantization.scales;
  const Quantization& to = operation.operation.outputQuantization;
  std::vector<OfmScale> out;
  for (int32_t i = 0; i < outputs; ++i) {
    const float weight = weights[weights.size() == 1 ? 0 : static_cast<size_t>(i)];
    const float ratio = input.scales[0] * weight / to.scales[0];
    out.push_back(ofmScale(ratio, to.zeroPoint));
  }
  return out;
}

std::vector<int16_t> weightsLessZeroPoint(const NetworkOperation& operation) {
  const TensorInfo& info = operation.operation.weights;
  std::vector<int16_t> out;
  out.reserve(operation.weights.size());
  for (uint8_t byte : operation.weights) {
    const int value = info.type == DataType::S8 ? static_cast<int8_t>(byte) : byte;
    out.push_back(static_cast<int16_t>(value - info.quantization.zeroPoint));
  }
  return out;
}

/// A 1x1 depthwise convolution with weights of 2 and a scale of 1/2 that changes the quantization only.
Pass PassMaker::identityPass(const NetworkOperation& operation, const FeatureMap& in,
                             const Quantization& from, const Quantization& to, bool toSigned) {
  Pass pass;
  pass.kind = PassKind::Mce;
  pass.name = operation.name;
  pass.inputs = {in};
  pass.weights.operation = MceOperation::Depthwise;
  pass.weights.inputs = pass.weights.outputs = in.channels;
  const auto channels = static_cast<size_t>(in.channels);
  pass.weights.weights.assign(channels, 2);
  pass.weights.biases.assign(channels, 0);
  pass.weights.scales.assign(channels, ofmScale(from.scales[0] * 0.5F / to.scales[0], to.zeroPoint));
  pass.subTop = pass.subLeft = {0};
  pass.activationMin = lowest(toSigned);
  pass.activationMax = highest(toSigned);
  pass.mceHeight = in.height;
  pass.mceWidth = in.width;
  pass.mceChannels = pass.inputChannels = in.channels;
  pass.mceSigned = toSigned;
  pass.pleZeroPoints = {to.zeroPoint, 0};
  pass.kernel = {PleOperation::Passthrough, PleSignedness::Any, 16, 16, 1, PleAxis::None};
  return pass;
}

/// The pass that produced the map, if its PLE kernel can be replaced: nothing else reads the map.
Pass* PassMaker::fusible(const FeatureMap& in, int32_t tensor) {
  if (uses_[static_cast<size_t>(tensor)] != 1 || asRows_[static_cast<size_t>(tensor)] ||
      list_.passes.empty()) {
    return nullptr;
  }
  Pass& last = list_.passes.back();
  return makes(last, in) && last.weights.operation != MceOperation::FullyConnected ? &last : nullptr;
}

/// Attaches a kernel to the pass that produced the input, or to an identity.
void PassMaker::behind(const NetworkOperation& operation, const PleKernel& kernel, const FeatureMap& out,
                       const std::array<PleScale, 2>& scales) {
  const int32_t tensor = operation.inputs[0];
  const FeatureMap in = map(tensor);
  Pass* pass = fusible(in, tensor);
  if (pass == nullptr) {
    const Quantization& same = info(tensor).quantization;
    list_.passes.push_back(identityPass(operation, in, same, same, in.isSigned));
    pass = &list_.passes.back();
  }
  pass->kernel = kernel;
  pass->scales = scales;
  pass->pleZeroPoints[0] = info(tensor).quantization.zeroPoint;
  pass->output = out;
}

/// The four sub-maps of a map (even and odd rows and columns) in depth; groups of one channel per bank
/// alternate.
FeatureMap PassMaker::interleaved(const NetworkOperation& operation, const FeatureMap& in) {
  const int32_t channels = interleavedChannels(in.channels, *target_.variant);
  FeatureMap out = between(in, divideUp(in.height, 2), divideUp(in.width, 2), channels, operation.name);
  behind(operation, {PleOperation::Interleave2x2, PleSignedness::Any, 16, 16, 1, PleAxis::None}, out, {});
  return out;
}

Status PassMaker::convolution(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  const Shape& weights = op.weights.shape;
  FeatureMap in = map(operation.inputs[0]);
  const Quantization& from = info(operation.inputs[0]).quantization;
  const bool strided = op.stride.x == 2;
  Pass pass;
  pass.kind = PassKind::Mce;
  pass.name = operation.name;
  LayerWeights& layer = pass.weights;
  // With one input channel, a depthwise convolution with several outputs is an ordinary one.
  const bool depthwise = op.op == Operator::DepthwiseConvolution && weights[3] == 1;
  layer.operation = depthwise ? MceOperation::Depthwise : MceOperation::Convolution;
  layer.height = static_cast<int32_t>(weights[0]);
  layer.width = static_cast<int32_t>(weights[1]);
  layer.inputs = in.channels;
  layer.outputs = static_cast<int32_t>(info(operation.outputs[0]).shape[3]);
  layer.strideX = static_cast<int32_t>(op.stride.x);
  layer.strideY = static_cast<int32_t>(op.stride.y);
  layer.padTop = static_cast<int32_t>(op.padding.top);
  layer.padLeft = static_cast<int32_t>(op.padding.left);
  layer.weights = weightsLessZeroPoint(operation);
  layer.biases = operation.biases;
  layer.scales = scalesOf(operation, from, layer.outputs);
  if (strided) {
    pass.oddHeight = in.height % 2 == 1;
    pass.oddWidth = in.width % 2 == 1;
    in = interleaved(operation, in);
  }
  for (const SubFilter& sub : subFilters(layer)) {
    pass.subTop.push_back(divideUp(std::max(layer.padTop - sub.offsetY, 0), layer.strideY));
    pass.subLeft.push_back(divideUp(std::max(layer.padLeft - sub.offsetX, 0), layer.strideX));
  }
  overMap(pass, operation, in);
  pass.pleZeroPoints[0] = op.outputQuantization.zeroPoint;
  list_.passes.push_back(std::move(pass));
  return {};
}

void PassMaker::overMap(Pass& pass, const NetworkOperation& operation, const FeatureMap& in) {
  pass.inputs = {in};
  pass.inputChannels = in.channels;
  pass.output = newMap(operation.outputs[0], operation.name);
  pass.mceHeight = pass.output.height;
  pass.mceWidth = pass.output.width;
  pass.mceChannels = pass.output.channels;
  pass.mceSigned = pass.output.isSigned;
  pass.activationMin = lowest(pass.mceSigned);
  pass.activationMax = highest(pass.mceSigned);
  pass.pleZeroPoints = {pass.output.zeroPoint, 0};
  pass.kernel = {PleOperation::Passthrough, PleSignedness::Any, 16, 16, 1, PleAxis::None};
  map(operation.outputs[0]) = pass.output;
}

/// For a single pixel it is a 1x1 convolution, which reads its input in place from SRAM; the multipliers
/// still outpace the arrival of the weights. A vector product, which uses all of them, reads its input from
/// DRAM, as bricks of 1024 elements.
Status PassMaker::fullyConnected(const NetworkOperation& operation) {
  constexpr int64_t kPartOfSram = 8;
  const FeatureMap& made = map(operation.inputs[0]);
  if (made.height == 1 && made.width == 1 &&
      groupStride(made.channels, *target_.variant) <= target_.bankBytes() / kPartOfSram)
    return convolution(operation);
  const FeatureMap in = channelsLast(made, operation.name);
  Pass pass;
  pass.kind = PassKind::Mce;
  pass.name = operation.name;
  LayerWeights& layer = pass.weights;
  layer.operation = MceOperation::FullyConnected;
  layer.inputs = in.height * in.width * in.channels;
  layer.outputs = static_cast<int32_t>(operation.operation.weights.shape[3]);
  layer.weights = weightsLessZeroPoint(operation);
  layer.biases = operation.biases;
  layer.scales = scalesOf(operation, info(operation.inputs[0]).quantization, layer.outputs);
  pass.inputs = {in};
  pass.inputChannels = layer.inputs <= 256
                           ? divideUp(layer.inputs, 16)
                           : roundUp(layer.inputs, kVectorProductInputs) / kVectorProductInputs * 16;
  pass.output = newMap(operation.outputs[0], operation.name);
  pass.subTop = pass.subLeft = {0};
  pass.mceHeight = pass.mceWidth = 8;
  pass.mceChannels = layer.outputs;
  pass.mceSigned = pass.output.isSigned;
  pass.activationMin = lowest(pass.mceSigned);
  pass.activationMax = highest(pass.mceSigned);
  pass.pleZeroPoints = {operation.operation.outputQuantization.zeroPoint, 0};
  pass.kernel = {PleOperation::Passthrough, PleSignedness::Any, 8, 8, 1, PleAxis::None};
  map(operation.outputs[0]) = pass.output;
  list_.passes.push_back(std::move(pass));
  return {};
}

/// Requantization and standalone padding.
Status PassMaker::identity(const NetworkOperation& operation) {
  const TensorInfo& to = info(operation.outputs[0]);
  const FeatureMap in = map(operation.inputs[0]);
  Pass pass = identityPass(operation, in, info(operation.inputs[0]).quantization, to.quantization,
                           to.type == DataType::S8);
  const Padding& pad = operation.operation.padding;
  pass.output = newMap(operation.outputs[0], operation.name);
  pass.weights.padTop = static_cast<int32_t>(pad.top);
  pass.weights.padLeft = static_cast<int32_t>(pad.left);
  pass.subTop = {pass.weights.padTop};
  pass.subLeft = {pass.weights.padLeft};
  pass.mceHeight = pass.output.height;
  pass.mceWidth = pass.output.width;
  map(operation.outputs[0]) = pass.output;
  list_.passes.push_back(std::move(pass));
  return {};
}

void PassMaker::relu(const NetworkOperation& operation) {
  const int32_t tensor = operation.inputs[0];
  const FeatureMap in = map(tensor);
  const bool isMade =
      uses_[static_cast<size_t>(tensor)] == 1 && !list_.passes.empty() && makes(list_.passes.back(), in);
  if (!isMade) {
    const Quantization& same = info(tensor).quantization;
    list_.passes.push_back(identityPass(operation, in, same, same, in.isSigned));
    list_.passes.back().output = newMap(operation.outputs[0], operation.name);
  } else if (asRows_[static_cast<size_t>(operation.outputs[0])]) {
    list_.storages[static_cast<size_t>(in.storage)].layout = Layout::Nhwc;
  }
  Pass& pass = list_.passes.back();
  pass.activationMin = std::clamp(operation.operation.lower, pass.activationMin, pass.activationMax);
  pass.activationMax = std::clamp(operation.operation.upper, pass.activationMin, pass.activationMax);
  map(operation.outputs[0]) = pass.output;
}

Status PassMaker::pooling(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  const FeatureMap in = map(operation.inputs[0]);
  const PleSignedness sign = signednessOf(in.isSigned);
  if (op.op == Operator::Pooling && op.pooling == PoolingType::Max && op.stride.x == 1) {
    slidingMaximum(operation);
    return {};
  }
  const bool average = op.op == Operator::Pooling && op.pooling == PoolingType::Average;
  const bool isMean = op.op == Operator::MeanXy || (average && op.padding == Padding{} &&
                                                    op.window == Extent{static_cast<uint32_t>(in.width),
                                                                        static_cast<uint32_t>(in.height)});
  const FeatureMap out = newMap(operation.outputs[0], operation.name);
  if (isMean) {
    const PleOperation mean = in.height == 7 ? PleOperation::MeanXy7x7 : PleOperation::MeanXy8x8;
    behind(operation, {mean, sign, 8, 8, 1, PleAxis::None}, out, {});
  } else if (average) {
    Pass pass;
    pass.kind = PassKind::Ple;
    pass.name = operation.name;
    pass.inputs = {in};
    pass.output = out;
    pass.kernel = {PleOperation::AvgPool3x3, sign, 0, 0, 1, PleAxis::None};
    pass.pleZeroPoints = {in.zeroPoint, 0};
    list_.passes.push_back(pass);
  } else if (op.window.x == 1) {
    behind(operation, {PleOperation::Downsample2x2, PleSignedness::Any, 16, 16, 1, PleAxis::None}, out, {});
  } else if (op.window.x == 2) {
    behind(operation, {PleOperation::MaxPool2x2, sign, 16, 16, 1, PleAxis::None}, out, {});
  } else {
    const PleOperation pool =
        op.padding == Padding{} ? PleOperation::MaxPool3x3Odd : PleOperation::MaxPool3x3Even;
    behind(operation, {pool, sign, 8, 8, 4, PleAxis::None}, out, {});
  }
  map(operation.outputs[0]) = out;
  return {};
}

/// Max pooling with stride 1: along X, then along Y.
void PassMaker::slidingMaximum(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  FeatureMap in = map(operation.inputs[0]);
  const FeatureMap out = newMap(operation.outputs[0], operation.name);
  const auto along = [&](PleAxis axis, const FeatureMap& from, const FeatureMap& to, uint32_t before,
                         uint32_t size) {
    Pass pass;
    pass.kind = PassKind::Ple;
    pass.name = operation.name;
    pass.inputs = {from};
    pass.output = to;
    pass.kernel = {PleOperation::MaxPool1d, signednessOf(from.isSigned), 0, 0, 1, axis};
    pass.poolPadBefore = static_cast<int32_t>(before);
    pass.poolSize = static_cast<int32_t>(size);
    list_.passes.push_back(pass);
  };
  if (op.window.x > 1) {
    const FeatureMap to =
        op.window.y > 1 ? between(in, in.height, out.width, in.channels, operation.name) : out;
    along(PleAxis::X, in, to, op.padding.left, op.window.x);
    in = to;
  }
  if (op.window.y > 1) along(PleAxis::Y, in, out, op.padding.top, op.window.y);
  if (op.window.x == 1 && op.window.y == 1) copy(in, out, operation.name);
  map(operation.outputs[0]) = out;
}

Status PassMaker::binary(const NetworkOperation& operation) {
  const TensorInfo &a = info(operation.inputs[0]), &b = info(operation.inputs[1]),
                   &o = info(operation.outputs[0]);
  Pass pass;
  pass.kind = PassKind::Ple;
  pass.name = operation.name;
  pass.inputs = {map(operation.inputs[0]), map(operation.inputs[1])};
  pass.output = newMap(operation.outputs[0], operation.name);
  const PleSignedness sign = signednessOf(pass.output.isSigned);
  const double to = o.quantization.scales[0];
  const double first = a.quantization.scales[0], second = b.quantization.scales[0];
  if (operation.operation.op == Operator::Multiplication) {
    pass.kernel = {PleOperation::Multiplication, sign, 0, 0, 1, PleAxis::None};
    // The product in single precision, as in Arm's compiler.
    const double ratio = a.quantization.scales[0] * b.quantization.scales[0] / to;
    CARINA_RETURN_IF_ERROR(checkPleRatio(operation, ratio));
    pass.scales[0] = pleScale(ratio, pass.output.isSigned ? 15 : 16);
  } else {
    const bool same = a.quantization == b.quantization && a.quantization == o.quantization;
    pass.kernel = {
        same ? PleOperation::Addition : PleOperation::AdditionRescale, sign, 16, 16, 1, PleAxis::None};
    CARINA_RETURN_IF_ERROR(checkPleRatio(operation, first / to));
    CARINA_RETURN_IF_ERROR(checkPleRatio(operation, second / to));
    const Sums one = rescaledReach(a, first / to, first / to);
    const Sums other = rescaledReach(b, second / to, second / to);
    if (!same)
      CARINA_RETURN_IF_ERROR(
          checkPleSums(operation, {one.low + other.low, one.high + other.high}, o.quantization.zeroPoint));
    pass.scales = {pleScale(first / to), pleScale(second / to)};
  }
  pass.pleZeroPoints = {a.quantization.zeroPoint, b.quantization.zeroPoint};
  map(operation.outputs[0]) = pass.output;
  list_.passes.push_back(std::move(pass));
  return {};
}

/// Leaky ReLU, sigmoid, tanh.
Status PassMaker::curve(const NetworkOperation& operation) {
  const TensorInfo &from = info(operation.inputs[0]), &to = info(operation.outputs[0]);
  const FeatureMap out = newMap(operation.outputs[0], operation.name);
  const PleSignedness sign = signednessOf(out.isSigned);
  const double scale = from.quantization.scales[0];
  if (operation.operation.op == Operator::LeakyRelu) {
    // In single precision, as in Arm's compiler: 0.09 / 0.06 is 1.5, not slightly less.
    const float ratio = from.quantization.scales[0] / to.quantization.scales[0];
    CARINA_RETURN_IF_ERROR(checkPleRatio(operation, ratio));
    CARINA_RETURN_IF_ERROR(checkPleSums(
        operation, rescaledReach(from, operation.operation.alpha * ratio, ratio), to.quantization.zeroPoint));
    behind(operation, {PleOperation::LeakyRelu, sign, 16, 16, 1, PleAxis::None}, out,
           {pleScale(ratio), pleScale(operation.operation.alpha * ratio)});
  } else {
    // 8.8 fixed point of x (tanh: 2x) times log2(e).
    const double factor = operation.operation.op == Operator::Tanh ? 2 : 1;
    CARINA_RETURN_IF_ERROR(checkPleRatio(operation, scale * factor * 370));
    behind(operation, {PleOperation::Sigmoid, sign, 16, 16, 1, PleAxis::None}, out,
           {pleScale(scale * factor * std::log2(std::exp(1.0)) * 256), PleScale{}});
  }
  map(operation.outputs[0]) = out;
  return {};
}

Status PassMaker::add(const NetworkOperation& operation) {
  const Operation& op = operation.operation;
  switch (op.op) {
    case Operator::Convolution:
    case Operator::DepthwiseConvolution:
      return convolution(operation);
    case Operator::FullyConnected:
      return fullyConnected(operation);
    case Operator::Requantize:
    case Operator::StandalonePadding:
      return identity(operation);
    case Operator::Pooling:
    case Operator::MeanXy:
      return pooling(operation);
    case Operator::Addition:
    case Operator::Multiplication:
      return binary(operation);
    case Operator::Relu:
      relu(operation);
      return {};
    case Operator::LeakyRelu:
    case Operator::Sigmoid:
    case Operator::Tanh:
      return curve(operation);
    case Operator::Concatenation:
      concatenation(operation);
      return {};
    case Operator::TransposeConvolution:
      transposeConvolution(operation);
      return {};
    case Operator::DepthToSpace:
      depthToSpace(operation);
      return {};
    case Operator::Resize:
      resize(operation);
      return {};
    case Operator::Split:
      split(operation);
      return {};
    case Operator::Transpose:
      return transpose(operation);
    case Operator::Reshape:
    case Operator::ReinterpretQuantization: {
      const FeatureMap from = op.op == Operator::Reshape
                                  ? channelsLast(map(operation.inputs[0]), operation.name)
                                  : map(operation.inputs[0]);
      FeatureMap& to = map(operation.outputs[0]);
      to = op.op == Operator::Reshape ? wholeMap(from.storage, info(operation.outputs[0])) : from;
      to.zeroPoint = info(operation.outputs[0]).quantization.zeroPoint;
      shareUses(operation);
      return {};
    }
    default:
      return fail(Code::NoIntegerForm, "{} cannot be compiled for Ethos-N", operatorName(op.op))
          .at(operation.name)
          .withRemedy("keep the operator on the CPU, or compile for an Ethos-U");
  }
}

Result<PassList> PassMaker::make() {
  maps_.resize(network_.tensors.size());
  uses_.assign(network_.tensors.size(), 0);
  asRows_.assign(network_.tensors.size(), false);
  for (const NetworkOperation& operation : network_.operations) {
    for (int32_t input : operation.inputs) ++uses_[static_cast<size_t>(input)];
    const Operator op = operation.operation.op;
    if (op == Operator::Reshape || op == Operator::FullyConnected || op == Operator::Transpose ||
        (op == Operator::Split && operation.operation.axis != 3)) {
      asRows_[static_cast<size_t>(operation.inputs[0])] = true;
    }
  }
  for (int32_t output : network_.outputs) {
    ++uses_[static_cast<size_t>(output)];
    asRows_[static_cast<size_t>(output)] = true;
  }
  for (size_t i = 0; i < network_.inputs.size(); ++i) {
    const TensorInfo& of = info(network_.inputs[i]);
    const int32_t storage = addStorage(Storage::Kind::Input, Layout::Nhwc, static_cast<int32_t>(of.shape[1]),
                                       static_cast<int32_t>(of.shape[2]), static_cast<int32_t>(of.shape[3]),
                                       fmt::format("input{}", i));
    map(network_.inputs[i]) = wholeMap(storage, of);
    list_.inputs.push_back(storage);
  }
  for (const NetworkOperation& operation : network_.operations) CARINA_RETURN_IF_ERROR(add(operation));
  for (size_t i = 0; i < network_.outputs.size(); ++i) {
    const int32_t tensor = network_.outputs[i];
    const FeatureMap from = map(tensor);
    Storage& made = list_.storages[static_cast<size_t>(from.storage)];
    const bool whole = from.height == from.wholeHeight && from.width == from.wholeWidth &&
                       from.channels == from.wholeChannels;
    const std::string name = fmt::format("output{}", i);
    if (whole && !from.planar && made.kind == Storage::Kind::Intermediate && made.layout == Layout::Nhwc &&
        uses_[static_cast<size_t>(tensor)] == 1) {
      made.kind = Storage::Kind::Output;
      made.name = name;
      list_.outputs.push_back(from.storage);
      continue;
    }
    const int32_t storage =
        addStorage(Storage::Kind::Output, Layout::Nhwc, from.height, from.width, from.channels, name);
    copy(from, wholeMap(storage, info(tensor)), name);
    list_.outputs.push_back(storage);
  }
  return std::move(list_);
}

int64_t Storage::bytes() const {
  if (layout == Layout::Nhwc) return int64_t{height} * width * channels;
  return int64_t{roundUp(height, 8)} * roundUp(width, 8) * roundUp(channels, 16);
}

PleScale pleScale(double ratio, int precisionBits) {
  int exponent = 0;
  const double fraction = std::frexp(ratio, &exponent);
  if (ratio <= 0 || exponent < -16) return {};
  const int precision = std::max(0, 32 - std::max(32 - precisionBits, exponent));
  const double multiplier = std::ldexp(fraction, precision);
  return {static_cast<uint16_t>(multiplier), static_cast<uint16_t>(std::max(precision, exponent) - exponent)};
}

Result<PassList> makePasses(const Network& network, const Target& target) {
  return PassMaker(network, target).make();
}

}  // namespace carina::ethosn::compiler
