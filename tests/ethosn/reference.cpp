// SPDX-License-Identifier: Apache-2.0
#include "ethosn/reference.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "ethosn/weights/weight_encoder.hpp"

namespace carina::ethosn::test {
namespace {

/// Values of a tensor, NHWC.
struct Values {
  TensorInfo info;
  std::vector<int32_t> data;

  int32_t h() const { return static_cast<int32_t>(info.shape[1]); }
  int32_t w() const { return static_cast<int32_t>(info.shape[2]); }
  int32_t c() const { return static_cast<int32_t>(info.shape[3]); }
  size_t index(int32_t y, int32_t x, int32_t ch) const {
    return static_cast<size_t>((int64_t{y} * w() + x) * c() + ch);
  }
  int32_t at(int32_t y, int32_t x, int32_t ch) const { return data[index(y, x, ch)]; }
  int32_t& at(int32_t y, int32_t x, int32_t ch) { return data[index(y, x, ch)]; }
  bool isSigned() const { return info.type == DataType::S8; }
  int32_t zeroPoint() const { return info.quantization.zeroPoint; }
  float scale() const { return info.quantization.scales[0]; }
  int32_t saturated(int64_t value) const {
    return static_cast<int32_t>(std::clamp<int64_t>(value, isSigned() ? -128 : 0, isSigned() ? 127 : 255));
  }
};

Values empty(const TensorInfo& info) {
  return {info, std::vector<int32_t>(elements(info.shape), 0)};
}

template <typename Visit>
void forEach(Values& values, Visit&& visit) {
  for (int32_t y = 0; y < values.h(); ++y) {
    for (int32_t x = 0; x < values.w(); ++x) {
      for (int32_t c = 0; c < values.c(); ++c) values.at(y, x, c) = visit(y, x, c);
    }
  }
}

int64_t roundedShift(int64_t value, int32_t shift) {
  return shift == 0 ? value : (value + (int64_t{1} << (shift - 1))) >> shift;
}

void convolve(const NetworkOperation& operation, const Values& in, Values& out) {
  const Operation& op = operation.operation;
  const bool full = op.op == Operator::FullyConnected;
  const bool depthwise = op.op == Operator::DepthwiseConvolution;
  const auto kh = static_cast<int32_t>(op.weights.shape[0]), kw = static_cast<int32_t>(op.weights.shape[1]);
  const auto inputs = static_cast<int32_t>(op.weights.shape[2]),
             last = static_cast<int32_t>(op.weights.shape[3]);
  const int32_t weightZero = op.weights.quantization.zeroPoint;
  const auto& scales = op.weights.quantization.scales;
  const auto weight = [&](int32_t y, int32_t x, int32_t i, int32_t m) {
    const uint8_t byte = operation.weights[static_cast<size_t>(((y * kw + x) * inputs + i) * last + m)];
    return (op.weights.type == DataType::S8 ? static_cast<int8_t>(byte) : byte) - weightZero;
  };
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    int64_t acc = operation.biases[static_cast<size_t>(c)];
    for (int32_t ky = 0; ky < kh; ++ky) {
      for (int32_t kx = 0; kx < kw; ++kx) {
        const int32_t sy = y * static_cast<int32_t>(op.stride.y) + ky - static_cast<int32_t>(op.padding.top);
        const int32_t sx = x * static_cast<int32_t>(op.stride.x) + kx - static_cast<int32_t>(op.padding.left);
        if (sy < 0 || sx < 0 || sy >= in.h() || sx >= in.w()) continue;
        if (depthwise) {
          acc += int64_t{in.at(sy, sx, c / last) - in.zeroPoint()} * weight(ky, kx, c / last, c % last);
          continue;
        }
        for (int32_t i = 0; i < inputs; ++i) {
          const int32_t value = full ? in.data[static_cast<size_t>(i)] : in.at(sy, sx, i);
          acc += int64_t{value - in.zeroPoint()} * weight(ky, kx, i, c);
        }
      }
    }
    const float ratio = in.scale() * scales[scales.size() == 1 ? 0 : static_cast<size_t>(c)] / out.scale();
    const OfmScale scale = ofmScale(ratio, 0);
    return out.saturated(roundedShift(acc * scale.scale, scale.shift) + out.zeroPoint());
  });
}

/// Every input element adds the filter, multiplied by its value, to a window of the output.
void transposeConvolve(const NetworkOperation& operation, const Values& in, Values& out) {
  const Operation& op = operation.operation;
  const auto kh = static_cast<int32_t>(op.weights.shape[0]), kw = static_cast<int32_t>(op.weights.shape[1]);
  const auto& scales = op.weights.quantization.scales;
  std::vector<int64_t> sums(out.data.size());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = operation.biases[i % static_cast<size_t>(out.c())];
  for (int32_t y = 0; y < in.h(); ++y) {
    for (int32_t x = 0; x < in.w(); ++x) {
      for (int32_t ky = 0; ky < kh; ++ky) {
        for (int32_t kx = 0; kx < kw; ++kx) {
          const int32_t oy = 2 * y + ky - static_cast<int32_t>(op.padding.top),
                        ox = 2 * x + kx - static_cast<int32_t>(op.padding.left);
          if (oy < 0 || ox < 0 || oy >= out.h() || ox >= out.w()) continue;
          for (int32_t i = 0; i < in.c(); ++i) {
            for (int32_t o = 0; o < out.c(); ++o) {
              const uint8_t byte =
                  operation.weights[static_cast<size_t>(((ky * kw + kx) * in.c() + i) * out.c() + o)];
              const int32_t weight = (op.weights.type == DataType::S8 ? static_cast<int8_t>(byte) : byte) -
                                     op.weights.quantization.zeroPoint;
              sums[out.index(oy, ox, o)] += int64_t{in.at(y, x, i) - in.zeroPoint()} * weight;
            }
          }
        }
      }
    }
  }
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    const float ratio = in.scale() * scales[scales.size() == 1 ? 0 : static_cast<size_t>(c)] / out.scale();
    const OfmScale scale = ofmScale(ratio, 0);
    return out.saturated(roundedShift(sums[out.index(y, x, c)] * scale.scale, scale.shift) + out.zeroPoint());
  });
}

/// Doubles the size: elements in between are the mean of their neighbours, or a copy of the preceding one.
void resize(bool bilinear, const Values& in, Values& out) {
  const OfmScale scale = ofmScale(in.scale() * 0.5F / out.scale(), 0);
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    int32_t sum = 0;
    for (int32_t dy : {0, 1}) {
      for (int32_t dx : {0, 1}) {
        sum += in.at(std::min((y + (bilinear ? dy : 0)) / 2, in.h() - 1),
                     std::min((x + (bilinear ? dx : 0)) / 2, in.w() - 1), c);
      }
    }
    // Rounds half up, which commutes with the offset of 128 between signed and unsigned codes.
    const int64_t acc = 2 * (((sum + 2) >> 2) - in.zeroPoint());
    return out.saturated(roundedShift(acc * scale.scale, scale.shift) + out.zeroPoint());
  });
}

void depthToSpace(const Values& in, Values& out) {
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    return in.at(y / 2, x / 2, (y % 2 * 2 + x % 2) * out.c() + c);
  });
}

void split(const Operation& op, const Values& in, std::vector<Values*> outs) {
  std::array<int32_t, 4> at{};
  for (size_t i = 0; i < outs.size(); ++i) {
    forEach(*outs[i],
            [&](int32_t y, int32_t x, int32_t c) { return in.at(at[1] + y, at[2] + x, at[3] + c); });
    at[op.axis] += static_cast<int32_t>(op.sizes[i]);
  }
}

/// A 1x1 convolution with weight 2 and scale 1/2.
void requantize(const NetworkOperation& operation, const Values& in, Values& out) {
  const OfmScale scale = ofmScale(in.scale() * 0.5F / out.scale(), 0);
  const auto top = static_cast<int32_t>(operation.operation.padding.top),
             left = static_cast<int32_t>(operation.operation.padding.left);
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    const int32_t sy = y - top, sx = x - left;
    const bool inside = sy >= 0 && sx >= 0 && sy < in.h() && sx < in.w();
    const int64_t acc = inside ? 2 * (in.at(sy, sx, c) - in.zeroPoint()) : 0;
    return out.saturated(roundedShift(acc * scale.scale, scale.shift) + out.zeroPoint());
  });
}

struct Fixed {
  int64_t multiplier = 0;
  int32_t shift = 0;
};

/// The multiplier is truncated to `bits`.
Fixed fixedOf(double ratio, int32_t bits = 16) {
  int exponent = 0;
  const double fraction = std::frexp(ratio, &exponent);
  if (exponent < -16) return {};
  const int precision = std::max(0, 32 - std::max(32 - bits, exponent));
  return {static_cast<int64_t>(std::ldexp(fraction, precision)), std::max(precision, exponent) - exponent};
}

int64_t sat16(int64_t value) {
  return std::clamp<int64_t>(value, -32768, 32767);
}

int64_t rescaled(int32_t value, const Fixed& fixed) {
  return (sat16((value * fixed.multiplier) >> (fixed.shift - 1)) + 1) >> 1;
}

void addition(const Values& a, const Values& b, Values& out) {
  const bool same =
      a.info.quantization == b.info.quantization && a.info.quantization == out.info.quantization;
  const Fixed first = fixedOf(static_cast<double>(a.scale()) / out.scale()),
              second = fixedOf(static_cast<double>(b.scale()) / out.scale());
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    if (same) return out.saturated(a.at(y, x, c) - a.zeroPoint() + b.at(y, x, c));
    return out.saturated(rescaled(a.at(y, x, c) - a.zeroPoint(), first) +
                         rescaled(b.at(y, x, c) - b.zeroPoint(), second) + out.zeroPoint());
  });
}

/// Truncates, and wraps to 8 bits.
void multiplication(const Values& a, const Values& b, Values& out) {
  const float scale = a.scale() * b.scale();  // single precision, as in Arm's compiler
  const Fixed fixed = fixedOf(static_cast<double>(scale) / out.scale(), out.isSigned() ? 15 : 16);
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    const int32_t product = (a.at(y, x, c) - a.zeroPoint()) * (b.at(y, x, c) - b.zeroPoint());
    const int64_t low = out.isSigned() ? static_cast<int16_t>(product) : static_cast<uint16_t>(product);
    const auto wide = static_cast<uint32_t>(low * fixed.multiplier);
    const uint32_t shifted = std::min(65535U, fixed.shift >= 32 ? 0U : wide >> fixed.shift);
    const auto byte = static_cast<uint8_t>(shifted + static_cast<uint32_t>(out.zeroPoint()));
    return out.isSigned() ? static_cast<int32_t>(static_cast<int8_t>(byte)) : static_cast<int32_t>(byte);
  });
}

void leakyRelu(float alpha, const Values& in, Values& out) {
  const float ratio = in.scale() / out.scale();  // single precision, as in Arm's compiler
  const Fixed plain = fixedOf(ratio), less = fixedOf(alpha * ratio);
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    const int32_t value = in.at(y, x, c) - in.zeroPoint();
    return out.saturated(std::max(rescaled(value, plain), rescaled(value, less)) + out.zeroPoint());
  });
}

int32_t meanOf(int64_t sum, int32_t count, bool isSigned) {
  const int64_t factor = (1 << 20) / count + 1;
  const int64_t scaled = (((sum + count / 2) * factor) >> 16) >> 4;
  return isSigned ? static_cast<int8_t>(scaled) : static_cast<uint8_t>(scaled);
}

void pool(const NetworkOperation& operation, const Values& in, Values& out) {
  const Operation& op = operation.operation;
  const bool average = op.op == Operator::MeanXy || op.pooling == PoolingType::Average;
  const bool whole = average && out.h() == 1 && out.w() == 1 && in.h() > 3;
  const auto windowY = static_cast<int32_t>(op.window.y), windowX = static_cast<int32_t>(op.window.x);
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    int64_t sum = 0;
    int32_t count = 0, largest = INT32_MIN;
    for (int32_t ky = 0; ky < (whole ? in.h() : windowY); ++ky) {
      for (int32_t kx = 0; kx < (whole ? in.w() : windowX); ++kx) {
        const int32_t sy = y * static_cast<int32_t>(op.stride.y) + ky - static_cast<int32_t>(op.padding.top);
        const int32_t sx = x * static_cast<int32_t>(op.stride.x) + kx - static_cast<int32_t>(op.padding.left);
        if (sy < 0 || sx < 0 || sy >= in.h() || sx >= in.w()) continue;
        sum += in.at(sy, sx, c);
        largest = std::max(largest, in.at(sy, sx, c));
        ++count;
      }
    }
    if (!average) return largest;
    if (whole) return meanOf(sum, count, in.isSigned());
    return static_cast<int32_t>(((sum + count / 2) * (65536 / count + 1)) >> 16);
  });
}

/// Rounds to nearest; the PLE's tables are within one code of this.
void sigmoid(bool tanh, const Values& in, Values& out) {
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    const double real = static_cast<double>(in.scale()) * (in.at(y, x, c) - in.zeroPoint());
    const double result = tanh ? std::tanh(real) : 1 / (1 + std::exp(-real));
    return out.saturated(std::lround(result / out.scale()) + out.zeroPoint());
  });
}

void concatenate(uint32_t axis, const std::vector<const Values*>& in, Values& out) {
  std::array<int32_t, 4> at{};
  for (const Values* part : in) {
    Values to = empty(part->info);
    to.info.quantization = out.info.quantization;
    NetworkOperation plain;
    requantize(plain, *part, to);
    for (int32_t y = 0; y < part->h(); ++y) {
      for (int32_t x = 0; x < part->w(); ++x) {
        for (int32_t c = 0; c < part->c(); ++c) out.at(at[1] + y, at[2] + x, at[3] + c) = to.at(y, x, c);
      }
    }
    at[axis] += static_cast<int32_t>(part->info.shape[axis]);
  }
}

void transpose(const std::array<uint32_t, 4>& permutation, const Values& in, Values& out) {
  forEach(out, [&](int32_t y, int32_t x, int32_t c) {
    const std::array<int32_t, 4> to = {0, y, x, c};
    std::array<int32_t, 4> from{};
    for (size_t d = 0; d < 4; ++d) from[permutation[d]] = to[d];
    return in.at(from[1], from[2], from[3]);
  });
}

void compute(const NetworkOperation& operation, const std::vector<const Values*>& in, Values& out) {
  const Operation& op = operation.operation;
  switch (op.op) {
    case Operator::Convolution:
    case Operator::DepthwiseConvolution:
    case Operator::FullyConnected:
      return convolve(operation, *in[0], out);
    case Operator::TransposeConvolution:
      return transposeConvolve(operation, *in[0], out);
    case Operator::Resize:
      return resize(op.resize == ResizeAlgorithm::Bilinear, *in[0], out);
    case Operator::DepthToSpace:
      return depthToSpace(*in[0], out);
    case Operator::Requantize:
    case Operator::StandalonePadding:
      return requantize(operation, *in[0], out);
    case Operator::Addition:
      return addition(*in[0], *in[1], out);
    case Operator::Multiplication:
      return multiplication(*in[0], *in[1], out);
    case Operator::LeakyRelu:
      return leakyRelu(op.alpha, *in[0], out);
    case Operator::Pooling:
    case Operator::MeanXy:
      return pool(operation, *in[0], out);
    case Operator::Sigmoid:
      return sigmoid(false, *in[0], out);
    case Operator::Tanh:
      return sigmoid(true, *in[0], out);
    case Operator::Concatenation:
      return concatenate(op.axis, in, out);
    case Operator::Relu:
      for (size_t i = 0; i < out.data.size(); ++i)
        out.data[i] = std::clamp(in[0]->data[i], op.lower, op.upper);
      return;
    case Operator::Transpose:
      return transpose(op.permutation, *in[0], out);
    case Operator::Reshape:
    case Operator::ReinterpretQuantization:
      out.data = in[0]->data;
      return;
    default:
      CARINA_UNREACHABLE("the reference knows what the compiler compiles");
  }
}

}  // namespace

std::vector<std::vector<uint8_t>> computeReference(const Network& network,
                                                   const std::vector<std::vector<uint8_t>>& inputs) {
  std::vector<Values> tensors;
  for (const TensorInfo& info : network.tensors) tensors.push_back(empty(info));
  for (size_t i = 0; i < inputs.size(); ++i) {
    Values& to = tensors[static_cast<size_t>(network.inputs[i])];
    for (size_t k = 0; k < inputs[i].size(); ++k) {
      to.data[k] = to.isSigned() ? static_cast<int8_t>(inputs[i][k]) : inputs[i][k];
    }
  }
  for (const NetworkOperation& operation : network.operations) {
    std::vector<const Values*> in;
    for (int32_t input : operation.inputs) in.push_back(&tensors[static_cast<size_t>(input)]);
    if (operation.operation.op == Operator::Split) {
      std::vector<Values*> outs;
      for (int32_t output : operation.outputs) outs.push_back(&tensors[static_cast<size_t>(output)]);
      split(operation.operation, *in[0], std::move(outs));
      continue;
    }
    compute(operation, in, tensors[static_cast<size_t>(operation.outputs[0])]);
  }
  std::vector<std::vector<uint8_t>> out;
  for (int32_t output : network.outputs) {
    std::vector<uint8_t>& bytes = out.emplace_back();
    for (int32_t value : tensors[static_cast<size_t>(output)].data)
      bytes.push_back(static_cast<uint8_t>(value));
  }
  return out;
}

int32_t NetworkBuilder::add(Operation operation, const std::vector<int32_t>& in, std::vector<uint8_t> weights,
                            std::vector<int32_t> biases) {
  std::vector<TensorInfo> infos;
  infos.reserve(in.size());
  for (int32_t input : in) infos.push_back(network_.tensors[static_cast<size_t>(input)]);
  NetworkOperation made;
  made.name = fmt::format("{}{}", operatorName(operation.op), network_.operations.size());
  made.inputs = in;
  for (TensorInfo& info : outputsOf(operation, infos))
    made.outputs.push_back(network_.addTensor(std::move(info)));
  made.operation = std::move(operation);
  made.weights = std::move(weights);
  made.biases = std::move(biases);
  network_.operations.push_back(std::move(made));
  return network_.operations.back().outputs[0];
}

int32_t NetworkBuilder::input(uint32_t height, uint32_t width, uint32_t channels, float scale, int32_t zero) {
  const int32_t tensor = network_.addTensor(
      {{1, height, width, channels}, type_, DataFormat::Nhwc, {zeroPoint(zero), {scale}, {}}});
  network_.inputs.push_back(tensor);
  return tensor;
}

/// Random weights and biases, and an output scale that uses the range of the output.
int32_t NetworkBuilder::weighted(Operation operation, int32_t in) {
  const TensorInfo& from = network_.tensors[static_cast<size_t>(in)];
  TensorInfo& weights = operation.weights;
  weights.type = type_;
  const bool depthwise = operation.op == Operator::DepthwiseConvolution;
  weights.format = depthwise ? DataFormat::Hwim : DataFormat::Hwio;
  weights.quantization = {zeroPoint(130), {0.01F}, {}};
  const uint32_t outputs = depthwise ? weights.shape[2] * weights.shape[3] : weights.shape[3];
  if (operation.op != Operator::FullyConnected && random_() % 2 == 0) {
    weights.quantization.dim = depthwise ? 2U : 3U;
    weights.quantization.scales.clear();
    for (uint32_t i = 0; i < outputs; ++i) {
      weights.quantization.scales.push_back(0.01F * static_cast<float>(1 + i % 3));
    }
  }
  std::vector<uint8_t> bytes(elements(weights.shape));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
  std::vector<int32_t> biases(outputs);
  for (int32_t& bias : biases) bias = static_cast<int32_t>(random_() % 20000) - 10000;
  operation.bias = {{1, 1, 1, outputs}, DataType::S32, DataFormat::Nhwc, {}};
  operation.bias.quantization.scales.clear();
  for (float scale : weights.quantization.scales) {
    operation.bias.quantization.scales.push_back(scale * from.quantization.scales[0]);
  }
  if (weights.quantization.dim) operation.bias.quantization.dim = 3;
  const auto taps =
      static_cast<float>(weights.shape[0] * weights.shape[1] * (depthwise ? 1 : weights.shape[2]));
  operation.outputQuantization = {zeroPoint(120), {from.quantization.scales[0] * 0.5F * std::sqrt(taps)}, {}};
  return add(std::move(operation), {in}, std::move(bytes), std::move(biases));
}

int32_t NetworkBuilder::convolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs,
                                    uint32_t stride, Padding padding) {
  Operation op;
  op.op = Operator::Convolution;
  op.weights.shape = {height, width, network_.tensors[static_cast<size_t>(in)].shape[3], outputs};
  op.stride = {stride, stride};
  op.padding = padding;
  return weighted(op, in);
}

int32_t NetworkBuilder::transposeConvolution(int32_t in, uint32_t height, uint32_t width, uint32_t outputs,
                                             Padding padding) {
  Operation op;
  op.op = Operator::TransposeConvolution;
  op.weights.shape = {height, width, network_.tensors[static_cast<size_t>(in)].shape[3], outputs};
  op.stride = {2, 2};
  op.padding = padding;
  return weighted(std::move(op), in);
}

int32_t NetworkBuilder::resize(int32_t in, ResizeAlgorithm algorithm, uint32_t height, uint32_t width) {
  const TensorInfo& from = network_.tensors[static_cast<size_t>(in)];
  Operation op;
  op.op = Operator::Resize;
  op.resize = algorithm;
  op.newShape = {1, height, width, from.shape[3]};
  op.outputQuantization = from.quantization;
  return add(op, {in});
}

std::vector<int32_t> NetworkBuilder::split(int32_t in, uint32_t axis, std::vector<uint32_t> sizes) {
  Operation op;
  op.op = Operator::Split;
  op.axis = axis;
  op.sizes = std::move(sizes);
  add(op, {in});
  return network_.operations.back().outputs;
}

int32_t NetworkBuilder::depthwise(int32_t in, uint32_t size, uint32_t stride, Padding padding) {
  Operation op;
  op.op = Operator::DepthwiseConvolution;
  op.weights.shape = {size, size, network_.tensors[static_cast<size_t>(in)].shape[3], 1};
  op.stride = {stride, stride};
  op.padding = padding;
  op.weights.format = DataFormat::Hwim;
  return weighted(op, in);
}

int32_t NetworkBuilder::fullyConnected(int32_t in, uint32_t outputs) {
  Operation op;
  op.op = Operator::FullyConnected;
  const Shape& shape = network_.tensors[static_cast<size_t>(in)].shape;
  op.weights.shape = {1, 1, shape[1] * shape[2] * shape[3], outputs};
  return weighted(op, in);
}

int32_t NetworkBuilder::pooling(int32_t in, PoolingType type, uint32_t size, uint32_t stride,
                                Padding padding) {
  Operation op;
  op.op = Operator::Pooling;
  op.pooling = type;
  op.window = {size, size};
  op.stride = {stride, stride};
  op.padding = padding;
  return add(op, {in});
}

int32_t NetworkBuilder::unary(Operator kind, int32_t in) {
  Operation op;
  op.op = kind;
  op.alpha = 0.1F;
  op.outputQuantization = {zeroPoint(90), {0.06F}, {}};
  op.padding = kind == Operator::StandalonePadding ? Padding{1, 2, 3, 1} : Padding{};
  return add(op, {in});
}

int32_t NetworkBuilder::relu(int32_t in, int32_t lower, int32_t upper) {
  Operation op;
  op.op = Operator::Relu;
  op.lower = zeroPoint(lower);
  op.upper = zeroPoint(upper);
  return add(op, {in});
}

int32_t NetworkBuilder::requantize(int32_t in, float scale, int32_t zero) {
  Operation op;
  op.op = Operator::Requantize;
  op.outputQuantization = {zeroPoint(zero), {scale}, {}};
  return add(op, {in});
}

int32_t NetworkBuilder::binary(Operator kind, int32_t a, int32_t b, float scale, int32_t zero) {
  Operation op;
  op.op = kind;
  op.outputQuantization = {zeroPoint(zero), {scale}, {}};
  return add(op, {a, b});
}

int32_t NetworkBuilder::reshape(int32_t in, Shape shape) {
  Operation op;
  op.op = Operator::Reshape;
  op.newShape = shape;
  return add(op, {in});
}

int32_t NetworkBuilder::concatenation(const std::vector<int32_t>& in, uint32_t axis, float scale,
                                      int32_t zero) {
  Operation op;
  op.op = Operator::Concatenation;
  op.axis = axis;
  op.outputQuantization = {zeroPoint(zero), {scale}, {}};
  return add(op, in);
}

std::vector<std::vector<uint8_t>> NetworkBuilder::randomInputs() {
  std::vector<std::vector<uint8_t>> out;
  for (int32_t input : network_.inputs) {
    std::vector<uint8_t>& bytes =
        out.emplace_back(elements(network_.tensors[static_cast<size_t>(input)].shape));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
  }
  return out;
}

}  // namespace carina::ethosn::test
