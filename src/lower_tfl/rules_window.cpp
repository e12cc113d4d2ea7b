// SPDX-License-Identifier: Apache-2.0
// Convolutions, matrix products and pooling: sums in 32 bits (48 for int16), rescaled like in TFLite.
#include <algorithm>
#include <numeric>

#include "lower/weights.hpp"
#include "lower_tfl/lowering.hpp"
#include "tfl/geometry.hpp"

namespace carina::lower_tfl {
namespace {

/// A filter in TFLite's order with a factor per output channel, and its bias.
struct Filter {
  Tensor codes;
  Tensor bias;
  std::vector<Multiplier> factors;
  int64_t zero = 0;  // of the codes; nonzero only in uint8 networks
};

/// `channels` output channels along `axis`. The scale of the file's bias is input scale * filter scale.
Result<Filter> filterOf(const Lowering& lowering, const ir::Value* filter, const ir::Value* bias,
                        const ir::Value* input, const ir::Value* output, int64_t channels, int axis,
                        bool singlePrecision) {
  CARINA_TRY(const Quantum from, lowering.codesOf(input, "input"));
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  if (input->dtype() != output->dtype())
    return fail(Code::NoIntegerForm, "its input is {}, its result {}", dtypeName(input->dtype()),
                dtypeName(output->dtype()));
  if (!filter->isConstant())
    return fail(Code::NoIntegerForm, "its filter '{}' is computed at run time", filter->name);
  if (filter->dtype() != DType::Int8 || !filter->quantization)
    return fail(Code::NotQuantized, "its filter '{}' is {}, not quantized int8", filter->name,
                ir::typeText(filter->type))
        .withRemedy("quantize the network when it is converted, weights and activations both");
  const ir::Quantization& quantization = *filter->quantization;
  if (quantization.perChannel() && quantization.axis != axis) {
    return fail(Code::UnusableQuantization,
                "its filter '{}' has scales along dimension {}, not along its output channels", filter->name,
                quantization.axis);
  }
  const bool bytes = lowering.isUnsigned(filter);
  if (bytes && (quantization.perChannel() || !lowering.isUnsigned(input)))
    return fail(Code::UnusableQuantization, "its filter '{}' is uint8, {}", filter->name,
                quantization.perChannel() ? "with a scale per channel" : "its input is not")
        .withRemedy("convert the network again, with int8 weights");
  if (!bytes && std::any_of(quantization.zeroPoints.begin(), quantization.zeroPoints.end(),
                            [](int64_t zero) { return zero != 0; }))
    return fail(Code::UnusableQuantization, "its filter '{}' has zero points other than 0", filter->name)
        .withRemedy("int8 weights are symmetric: convert the network again");
  Filter result{filter->constant(), {}, {}, bytes ? quantization.zeroPoints[0] : 0};
  if (result.zero < integerMin(DType::Int8) || result.zero > integerMax(DType::Int8))
    return fail(Code::UnusableQuantization, "its filter '{}' has zero point {}, which is not a uint8 code",
                filter->name, result.zero + 128);
  for (double scale : quantization.scales) {
    double factor = from.scale * scale / to.scale;
    // Without a scale per channel, FULLY_CONNECTED and all uint8 kernels round the product of scales to
    // float32.
    if ((singlePrecision || bytes) && quantization.scales.size() == 1)
      factor = static_cast<double>(from.single() * static_cast<float>(scale)) / to.scale;
    result.factors.push_back(quantizeMultiplier(factor));
  }
  const bool wide = input->dtype() == DType::Int16;
  result.bias = Tensor::zeros(wide ? DType::Int48 : DType::Int32, {channels});
  if (!bias) return result;
  if (!bias->isConstant() || (bias->dtype() != DType::Int32 && bias->dtype() != DType::Int64))
    return fail(Code::NoIntegerForm, "its bias '{}' is {}, not a constant of int32 or int64", bias->name,
                ir::typeText(bias->type));
  for (int64_t i = 0; i < channels; ++i) {
    const int64_t value = bias->constant().integerAt(i);
    if (value < integerMin(result.bias.dtype()) || value > integerMax(result.bias.dtype()))
      return fail(Code::NoIntegerForm, "its bias holds {}, beyond {} bits", value, wide ? 48 : 32);
    result.bias.setIntegerAt(i, value);
  }
  return result;
}

Result<ir::Value*> finished(Lowering& lowering, ir::Value* sums, const ir::Value* output,
                            std::span<const Multiplier> factors, tfl::Activation activation) {
  CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
  CARINA_TRY(const CodeRange range, lowering.activation(activation, output));
  Result<ir::Value*> codes = sums->dtype() == DType::Int48
                                 ? lowering.rescale48(sums, output->dtype(), factors)
                                 : lowering.rescale(sums, output->dtype(), 0, to.zero, factors);
  if (!codes) return codes;
  return lowering.clamped(*codes, range);
}

/// Padding of both spatial dimensions in TOSA's form; elements that no window reaches are cropped from the
/// input.
Emitter::Window windowOf(Emitter& emit, ir::Value*& input, const tfl::WindowAxis& height,
                         const tfl::WindowAxis& width, ir::Ints stride, ir::Ints dilation) {
  Emitter::Window window{std::move(stride), std::move(dilation), {}};
  int64_t dim = 1;
  for (const tfl::WindowAxis* axis : {&height, &width}) {
    window.pad.push_back(axis->before);
    window.pad.push_back(std::max<int64_t>(axis->after, 0));
    if (axis->after < 0) input = emit.sliceAxis(input, dim, 0, input->dim(dim) + axis->after);
    ++dim;
  }
  return window;
}

/// The PAD before a convolution without its own padding, if every window that reads its zeros also reads
/// other elements: [top, bottom, left, right]; otherwise empty.
template <typename Op>
ir::Ints paddingBefore(const Op& op) {
  const auto pad = ir::producerAs<tfl::Pad>(op.input());
  if (!pad || op.padding() != tfl::Padding::VALID || pad.input()->quantization != op.input()->quantization)
    return {};
  const auto paddings = tfl::paddingsOf(pad.paddings(), pad.input()->shape());
  if (!paddings || paddings->size() != 8) return {};
  const ir::Ints& p = *paddings;
  const int64_t height = op.filter()->dim(1), width = op.filter()->dim(2);
  const bool fits = p[0] == 0 && p[1] == 0 && p[6] == 0 && p[7] == 0 && std::max(p[2], p[3]) < height &&
                    std::max(p[4], p[5]) < width;
  return fits ? ir::Ints(p.begin() + 2, p.begin() + 6) : ir::Ints();
}

/// The window over `input`, which is set to the convolution's input, or to that of a PAD that the window
/// absorbs.
template <typename Op>
Emitter::Window convolutionWindow(Lowering& lowering, const Op& op, ir::Value*& input) {
  tfl::WindowAxis height = *tfl::windowAxis(op.padding(), op.input()->dim(1), op.filter()->dim(1),
                                            op.strideH(), op.dilationHFactor());
  tfl::WindowAxis width = *tfl::windowAxis(op.padding(), op.input()->dim(2), op.filter()->dim(2),
                                           op.strideW(), op.dilationWFactor());
  input = lowering.get(op.input());
  if (const ir::Ints pad = paddingBefore(op); !pad.empty()) {
    input = lowering.get(ir::producerAs<tfl::Pad>(op.input()).input());
    height = {height.outputs, pad[0], height.after + pad[1]};
    width = {width.outputs, pad[2], width.after + pad[3]};
  }
  return windowOf(lowering.emit(), input, height, width, {op.strideH(), op.strideW()},
                  {op.dilationHFactor(), op.dilationWFactor()});
}

/// Elements [first, first + count) of dimension 0.
Tensor rows(const Tensor& tensor, int64_t first, int64_t count) {
  Shape shape = tensor.shape();
  const int64_t size = tensor.numElements() / shape[0];
  shape[0] = count;
  Tensor part = Tensor::uninitialized(tensor.dtype(), shape);
  for (int64_t i = 0; i < count * size; ++i) part.setIntegerAt(i, tensor.integerAt(first * size + i));
  return part;
}

Status lowerConv(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::Conv2d>(&node);
  const int64_t channels = op.filter()->dim(0), depth = op.filter()->dim(3);
  CARINA_TRY(const Filter filter,
             filterOf(lowering, op.filter(), op.bias(), op.input(), op.output(), channels, 0, false));
  CARINA_TRY(const Quantum from, lowering.codesOf(op.input(), "input"));
  Emitter& emit = lowering.emit();
  ir::Value* input = nullptr;
  const Emitter::Window window = convolutionWindow(lowering, op, input);
  const int64_t groups = op.input()->dim(3) / depth, each = channels / groups;
  std::vector<ir::Value*> parts;
  for (int64_t g = 0; g < groups; ++g) {
    ir::Value* part = groups == 1 ? input : emit.sliceAxis(input, 3, g * depth, depth);
    ir::Value* weight = emit.constant(groups == 1 ? filter.codes : rows(filter.codes, g * each, each));
    ir::Value* bias = emit.constant(groups == 1 ? filter.bias : rows(filter.bias, g * each, each));
    ir::Value* sums = emit.conv2d(part, weight, bias, from.zero, filter.zero, window);
    std::span<const Multiplier> factors = filter.factors;
    if (factors.size() > 1)
      factors = factors.subspan(static_cast<size_t>(g * each), static_cast<size_t>(each));
    CARINA_TRY(ir::Value * codes,
               finished(lowering, sums, op.output(), factors, op.fusedActivationFunction()));
    parts.push_back(codes);
  }
  lowering.define(op.output(), emit.concat(parts, 3));
  return {};
}

Status lowerDepthwiseConv(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::DepthwiseConv2d>(&node);
  const Shape& shape = op.filter()->shape();
  CARINA_TRY(const Filter filter,
             filterOf(lowering, op.filter(), op.bias(), op.input(), op.output(), shape[3], 3, false));
  CARINA_TRY(const Quantum from, lowering.codesOf(op.input(), "input"));
  Emitter& emit = lowering.emit();
  ir::Value* input = nullptr;
  const Emitter::Window window = convolutionWindow(lowering, op, input);
  const int64_t depth = op.input()->dim(3);
  ir::Value* weight = emit.constant(filter.codes.reshaped({shape[1], shape[2], depth, shape[3] / depth}));
  ir::Value* sums =
      emit.depthwiseConv2d(input, weight, emit.constant(filter.bias), from.zero, filter.zero, window);
  CARINA_TRY(ir::Value * codes,
             finished(lowering, sums, op.output(), filter.factors, op.fusedActivationFunction()));
  lowering.define(op.output(), codes);
  return {};
}

Status lowerTransposeConv(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::TransposeConv>(&node);
  const Shape &input = op.input()->shape(), &kernel = op.filter()->shape(), &out = op.output()->shape();
  CARINA_TRY(const Filter filter,
             filterOf(lowering, op.filter(), op.bias(), op.input(), op.output(), kernel[0], 0, false));
  CARINA_TRY(const Quantum from, lowering.codesOf(op.input(), "input"));
  Emitter& emit = lowering.emit();
  Emitter::Window window{{op.strideH(), op.strideW()}, {}, {}};
  for (size_t i = 0; i < 2; ++i) {
    const tfl::WindowAxis axis =
        *tfl::windowAxis(op.padding(), out[i + 1], kernel[i + 1], window.stride[i], 1);
    const int64_t whole = (input[i + 1] - 1) * window.stride[i] + kernel[i + 1];
    window.pad.push_back(-axis.before);
    window.pad.push_back(out[i + 1] - whole + axis.before);
    // VALID may leave rows after the last window to which nothing is added, but no more than a stride.
    if (std::min(window.pad[2 * i], window.pad[2 * i + 1]) <= -kernel[i + 1])
      return fail(Code::NoIntegerForm, "an output of size {} cannot result from an input of size {}",
                  out[i + 1], input[i + 1]);
  }
  ir::Value* sums = emit.transposeConv2d(lowering.get(op.input()), emit.constant(filter.codes),
                                         emit.constant(filter.bias), from.zero, filter.zero, window);
  CARINA_TRY(ir::Value * codes,
             finished(lowering, sums, op.output(), filter.factors, op.fusedActivationFunction()));
  lowering.define(op.output(), codes);
  return {};
}

/// a [N, H, C] x b [N, C, W], both quantized, as codes of `output`.
Result<ir::Value*> product(Lowering& lowering, ir::Value* a, ir::Value* b, const Quantum& qa,
                           const Quantum& qb, const ir::Value* output, double factor,
                           tfl::Activation activation) {
  ir::Value* sums = lowering.emit().matmul(a, b, qa.zero, qb.zero);
  const Multiplier multiplier = quantizeMultiplier(factor);
  return finished(lowering, sums, output, std::span(&multiplier, 1), activation);
}

Status lowerFullyConnected(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::FullyConnected>(&node);
  const int64_t channels = op.filter()->dim(0), depth = op.filter()->dim(1);
  const int64_t count = op.input()->numElements() / depth;
  CARINA_TRY(const Quantum from, lowering.codesOf(op.input(), "input"));
  Emitter& emit = lowering.emit();
  ir::Value* input = lowering.get(op.input());
  ir::Value* codes = nullptr;
  if (op.filter()->isConstant()) {
    CARINA_TRY(const Filter filter,
               filterOf(lowering, op.filter(), op.bias(), op.input(), op.output(), channels, 0, true));
    ir::Value* weight = emit.constant(filter.codes.reshaped({channels, 1, 1, depth}));
    ir::Value* sums =
        emit.conv2d(emit.reshape(input, {1, count, 1, depth}), weight, emit.constant(filter.bias), from.zero,
                    filter.zero, {{1, 1}, {1, 1}, {0, 0, 0, 0}});
    CARINA_TRY(codes, finished(lowering, sums, op.output(), filter.factors, op.fusedActivationFunction()));
  } else {
    if (op.bias()) {
      return fail(Code::NoIntegerForm, "its filter is computed at run time, and it has a bias")
          .withRemedy("add the bias with a separate operator");
    }
    CARINA_TRY(const Quantum weights, lowering.bytesOf(op.filter(), "filter"));
    CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
    if (op.input()->dtype() != DType::Int8 || op.output()->dtype() != DType::Int8)
      return fail(Code::NoIntegerForm, "its filter is computed at run time, its input is not int8");
    ir::Value* b = emit.transpose(emit.reshape(lowering.get(op.filter()), {1, channels, depth}), {0, 2, 1});
    const double factor = static_cast<double>(from.single() * weights.single()) / to.scale;
    CARINA_TRY(codes, product(lowering, emit.reshape(input, {1, count, depth}), b, from, weights, op.output(),
                              factor, op.fusedActivationFunction()));
  }
  lowering.define(op.output(), emit.reshape(codes, op.output()->shape()));
  return {};
}

Status lowerBatchMatmul(Lowering& lowering, const ir::Node& node) {
  const auto op = ir::cast<tfl::BatchMatmul>(&node);
  CARINA_TRY(const Quantum x, lowering.codesOf(op.x(), "first matrix"));
  CARINA_TRY(const Quantum y, lowering.codesOf(op.y(), "second matrix"));
  CARINA_TRY(const Quantum to, lowering.codesOf(op.output(), "result"));
  if (op.x()->dtype() != op.y()->dtype() || op.x()->dtype() != op.output()->dtype())
    return fail(Code::NoIntegerForm, "it multiplies {} and {} to {}", dtypeName(op.x()->dtype()),
                dtypeName(op.y()->dtype()), dtypeName(op.output()->dtype()));
  Emitter& emit = lowering.emit();
  const Shape& out = op.output()->shape();
  const Shape outer(out.begin(), out.end() - 2);
  const int64_t batches = numElements(outer);
  // Both as [batches, rows, columns], repeated if one has fewer batches.
  const auto matrix = [&](const ir::Value* value, bool swapped) {
    ir::Value* m = lowering.ranked(value, static_cast<int64_t>(out.size()));
    Shape multiples(out.size(), 1);
    for (size_t i = 0; i < outer.size(); ++i) multiples[i] = outer[i] / m->shape()[i];
    if (m->numElements() / (value->dim(value->rank() - 1) * value->dim(value->rank() - 2)) != batches)
      m = emit.tile(m, multiples);
    m = emit.reshape(m, {batches, value->dim(value->rank() - 2), value->dim(value->rank() - 1)});
    return swapped ? emit.transpose(m, {0, 2, 1}) : m;
  };
  const double factor = static_cast<double>(x.single() * y.single()) / to.scale;
  CARINA_TRY(ir::Value * codes, product(lowering, matrix(op.x(), op.adjX()), matrix(op.y(), op.adjY()), x, y,
                                        op.output(), factor, tfl::Activation::NONE));
  lowering.define(op.output(), emit.reshape(codes, out));
  return {};
}

template <typename Op>
Status lowerPool(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  CARINA_TRY([[maybe_unused]] const Quantum from, lowering.codesOf(op.input(), "input"));
  CARINA_TRY(const CodeRange range, lowering.activation(op.fusedActivationFunction(), op.output()));
  Emitter& emit = lowering.emit();
  ir::Value* input = lowering.get(op.input());
  const auto axis = [&](int64_t dim, int64_t kernel, int64_t stride) {
    return *tfl::windowAxis(op.padding(), op.input()->dim(dim), kernel, stride, 1);
  };
  const ir::Ints kernel{op.filterHeight(), op.filterWidth()};
  const Emitter::Window window = windowOf(emit, input, axis(1, kernel[0], op.strideH()),
                                          axis(2, kernel[1], op.strideW()), {op.strideH(), op.strideW()}, {});
  // Averages the codes: input and result have the same quantization, which converters ensure. Ties are
  // rounded away from code 0 of the file.
  const int64_t zero = lowering.isUnsigned(op.input()) ? integerMin(DType::Int8) : 0;
  ir::Value* pooled = std::is_same_v<Op, tfl::MaxPool2d> ? emit.maxPool2d(input, kernel, window)
                                                         : emit.averagePool2d(input, kernel, window, zero);
  lowering.define(op.output(), lowering.clamped(pooled, range));
  return {};
}

}  // namespace

void addWindowRules(Rules& rules) {
  rules[&tfl::Conv2d::def()] = lowerConv;
  rules[&tfl::DepthwiseConv2d::def()] = lowerDepthwiseConv;
  rules[&tfl::TransposeConv::def()] = lowerTransposeConv;
  rules[&tfl::FullyConnected::def()] = lowerFullyConnected;
  rules[&tfl::BatchMatmul::def()] = lowerBatchMatmul;
  rules[&tfl::AveragePool2d::def()] = lowerPool<tfl::AveragePool2d>;
  rules[&tfl::MaxPool2d::def()] = lowerPool<tfl::MaxPool2d>;
}

}  // namespace carina::lower_tfl
