// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear: CONV2D, DEPTHWISE_CONV2D, CONV3D, TRANSPOSE_CONV2D with the channel innermost.
#include <algorithm>
#include <numeric>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "lower/matrices.hpp"
#include "lower/rules.hpp"
#include "lower/weights.hpp"

namespace carina::lower {
namespace {

/// A convolution with a batch dimension and at least two spatial dimensions.
struct Geometry {
  StoredTensor input;  // aten [N, C, spatial...]
  Tensor weight;
  ir::Ints stride, dilation, padBefore, padAfter, outputPadding;
};

size_t spatialRank(const Geometry& g) {
  return g.stride.size();
}

/// conv1d becomes a conv2d of height 1; a missing batch becomes 1.
Geometry geometryOf(Lowering& lowering, const aten::ConvOp& conv, const StoredTensor& input, Tensor weight) {
  Geometry g{input,          std::move(weight), conv.stride,       conv.dilation,
             conv.padBefore, conv.padAfter,     conv.outputPadding};
  Shape shape = input.shape();
  if (shape.size() == conv.spatialRank() + 1) shape.insert(shape.begin(), 1);
  if (conv.spatialRank() == 1) {
    shape.insert(shape.begin() + 2, 1);
    Shape weightShape = g.weight.shape();
    weightShape.insert(weightShape.begin() + 2, 1);
    g.weight = g.weight.reshaped(weightShape);
    for (ir::Ints* list : {&g.stride, &g.dilation}) list->insert(list->begin(), 1);
    for (ir::Ints* list : {&g.padBefore, &g.padAfter, &g.outputPadding}) list->insert(list->begin(), 0);
  }
  g.input = lowering.viewed(input, shape);
  return g;
}

/// Elements [from, from + count) of one dimension.
Tensor sliceOf(const Tensor& tensor, int axis, int64_t from, int64_t count) {
  Shape shape = tensor.shape();
  const int64_t extent = shape[static_cast<size_t>(axis)];
  int64_t outer = 1, inner = dtypeSize(tensor.dtype());
  for (int i = 0; i < axis; ++i) outer *= shape[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  shape[static_cast<size_t>(axis)] = count;
  Tensor result = Tensor::uninitialized(tensor.dtype(), shape);
  const auto to = result.mutableBytes();
  for (int64_t o = 0; o < outer; ++o) {
    const auto source = tensor.bytes().subspan(static_cast<size_t>((o * extent + from) * inner),
                                               static_cast<size_t>(count * inner));
    std::copy(source.begin(), source.end(), to.begin() + static_cast<std::ptrdiff_t>(o * count * inner));
  }
  return result;
}

/// TOSA requires output sizes to divide exactly: elements that PyTorch ignores at the end are removed from
/// the trailing padding, then from the input. Returns the window and crops `input` (channel-last) if
/// necessary; if nothing would be left of it, the padding that windows read is made explicit.
Emitter::Window fittedWindow(Lowering& lowering, const Geometry& g, const Shape& kernel, ir::Value*& input,
                             int64_t inputZero) {
  Emitter::Window window{g.stride, g.dilation, {}};
  for (size_t i = 0; i < spatialRank(g); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    const int64_t reach = (kernel[i] - 1) * g.dilation[i] + 1;
    const int64_t spare = (input->dim(axis) + g.padBefore[i] + g.padAfter[i] - reach) % g.stride[i];
    const int64_t fromPad = std::min(spare, g.padAfter[i]);
    if (spare - fromPad >= input->dim(axis)) {
      Shape padding(static_cast<size_t>(2 * input->rank()), 0);
      padding[static_cast<size_t>(2 * axis)] = g.padBefore[i];
      const int64_t read = input->dim(axis) + g.padBefore[i] - (spare - fromPad);
      input = lowering.emit().sliceAxis(lowering.emit().pad(input, padding, inputZero), axis, 0, read);
      window.pad.insert(window.pad.end(), {0, 0});
      continue;
    }
    window.pad.push_back(g.padBefore[i]);
    window.pad.push_back(g.padAfter[i] - fromPad);
    if (spare > fromPad)
      input = lowering.emit().sliceAxis(input, axis, 0, input->dim(axis) - (spare - fromPad));
  }
  return window;
}

Shape spatialOf(const Shape& weight) {
  return {weight.begin() + 2, weight.end()};
}

/// [O, I, k...] -> [O, k..., I]
Tensor channelInnermost(const Tensor& weight) {
  return transposed(weight, Lowering::channelLast(static_cast<size_t>(weight.rank())));
}

/// A kernel with dilation - 1 zeros (zero points) between its taps, preceded by `front` and followed by
/// `back` zeros.
Tensor widened(const Tensor& weight, const ir::Ints& dilation, const ir::Ints& front, const ir::Ints& back,
               int64_t zero) {
  Shape shape = weight.shape();
  for (size_t i = 0; i < dilation.size(); ++i)
    shape[i + 2] = front[i] + (shape[i + 2] - 1) * dilation[i] + 1 + back[i];
  if (shape == weight.shape()) return weight;
  Tensor result = Tensor::uninitialized(DType::Int8, shape);
  const auto to = result.mutableAs<int8_t>();
  std::fill(to.begin(), to.end(), static_cast<int8_t>(zero));
  const auto from = weight.as<int8_t>();
  const Shape strides = rowMajorStrides(shape);
  Shape index(shape.size(), 0);
  for (int8_t code : from) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i)
      at += strides[i] * (i < 2 ? index[i] : front[i - 2] + index[i] * dilation[i - 2]);
    to[static_cast<size_t>(at)] = code;
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < weight.dim(static_cast<int64_t>(i))) break;
      index[i] = 0;
    }
  }
  return result;
}

/// One group: weight [O, I, k...] in aten order.
ir::Value* plainGroup(Lowering& lowering, const Geometry& g, ir::Value* input, const Tensor& weight,
                      Tensor bias, int64_t inputZero, int64_t weightZero) {
  Emitter& emit = lowering.emit();
  const Emitter::Window window = fittedWindow(lowering, g, spatialOf(weight.shape()), input, inputZero);
  ir::Value* kernel = emit.constant(channelInnermost(weight));
  ir::Value* biasValue = emit.constant(std::move(bias));
  return spatialRank(g) == 3 ? emit.conv3d(input, kernel, biasValue, inputZero, weightZero, window)
                             : emit.conv2d(input, kernel, biasValue, inputZero, weightZero, window);
}

/// One group of a transposed convolution: weight [I, O, kh, kw].
Result<ir::Value*> transposedGroup(Lowering& lowering, const Geometry& g, ir::Value* input,
                                   const Tensor& weight, Tensor bias, int64_t inputZero, int64_t weightZero) {
  if (spatialRank(g) != 2)
    return fail(Code::NoIntegerForm, "a transposed 3-d convolution cannot be expressed in TOSA")
        .withRemedy("upsample, then convolve: ordinary 3-d convolutions are supported");
  // TOSA crops less than a kernel on each side: if the padding is larger, taps of zeros are added to the
  // kernel on the other side.
  Emitter::Window window{g.stride, {}, {}};
  ir::Ints front, back;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = (weight.dim(static_cast<int64_t>(i) + 2) - 1) * g.dilation[i] + 1;
    const int64_t cutBefore = g.padBefore[i], cutAfter = g.padAfter[i] - g.outputPadding[i];
    front.push_back(std::max<int64_t>(cutAfter - reach + 1, 0));
    back.push_back(std::max<int64_t>(cutBefore - reach + 1, 0));
    window.pad.push_back(-(cutBefore + front[i]));
    window.pad.push_back(-(cutAfter + back[i]));
  }
  const Tensor wide = widened(weight, g.dilation, front, back, weightZero);
  ir::Value* kernel = lowering.emit().constant(transposed(wide, {1, 2, 3, 0}));
  return lowering.emit().transposeConv2d(input, kernel, lowering.emit().constant(std::move(bias)), inputZero,
                                         weightZero, window);
}

/// One output channel per input channel and multiplier: output channel o = c * M + m reads input channel c.
/// weight [C * M, 1, k...] in aten order. TOSA has no form for three dimensions: the result is then the sum
/// of one 2-d convolution per tap of the outermost dimension, over the planes that the tap reads.
ir::Value* depthwiseGroups(Lowering& lowering, const Geometry& g, ir::Value* input, Tensor bias,
                           int64_t inputZero, int64_t weightZero) {
  Emitter& emit = lowering.emit();
  const int64_t channels = input->dim(input->rank() - 1);
  const auto convolved = [&](ir::Value* maps, const Tensor& weight, Tensor biases,
                             const Emitter::Window& window) {
    const Tensor grouped =
        weight.reshaped({channels, weight.dim(0) / channels, weight.dim(2), weight.dim(3)});
    return emit.depthwiseConv2d(maps, emit.constant(transposed(grouped, {2, 3, 0, 1})),
                                emit.constant(std::move(biases)), inputZero, weightZero, window);
  };
  Emitter::Window window = fittedWindow(lowering, g, spatialOf(g.weight.shape()), input, inputZero);
  if (spatialRank(g) == 2) return convolved(input, g.weight, std::move(bias), window);

  const int64_t taps = g.weight.dim(2), stride = window.stride[0], dilation = window.dilation[0];
  input = emit.pad(input, {0, 0, window.pad[0], window.pad[1], 0, 0, 0, 0, 0, 0}, inputZero);
  const int64_t planes = (input->dim(1) - (taps - 1) * dilation - 1) / stride + 1;
  const Emitter::Window plane{{window.stride.begin() + 1, window.stride.end()},
                              {window.dilation.begin() + 1, window.dilation.end()},
                              {window.pad.begin() + 2, window.pad.end()}};
  const int64_t outputs = g.weight.dim(0);
  const Tensor none = Tensor::zeros(bias.dtype(), bias.shape());
  ir::Value* sum = nullptr;
  for (int64_t tap = 0; tap < taps; ++tap) {
    ir::Value* read = emit.sliceEvery(input, 1, tap * dilation, planes, stride);
    read = emit.reshape(read, {read->dim(0) * planes, read->dim(2), read->dim(3), channels});
    const Tensor weight =
        sliceOf(g.weight, 2, tap, 1).reshaped({outputs, 1, g.weight.dim(3), g.weight.dim(4)});
    ir::Value* part = convolved(read, weight, tap == 0 ? bias : none, plane);
    sum = sum ? emit.binary(Binary::Add, sum, part) : part;
  }
  return emit.reshape(sum, {input->dim(0), planes, sum->dim(1), sum->dim(2), outputs});
}

Status lowerConvolution(Lowering& lowering, const ir::Node& node) {
  const aten::ConvOp conv = *aten::asConvolution(&node);
  CARINA_TRY(const QuantizedValue input, lowering.plainValue(conv.input));
  CARINA_TRY(const Weight weight, weightOf(lowering, conv.weight, conv.weightChannelAxis()));
  const int64_t channels = conv.outputChannels();
  std::vector<double> weightScales = weight.scales;
  // The weight of a transposed convolution has the channels of one group: all groups share their scales.
  for (size_t c = 0; weightScales.size() > 1 && static_cast<int64_t>(weightScales.size()) < channels; ++c)
    weightScales.push_back(weightScales[c]);
  CARINA_TRY(Tensor bias,
             biasOf(lowering, conv.bias, channels, input.scale(), weightScales, input.data.dtype()));
  const std::optional<Interval> within =
      conv.weightChannelAxis() == 0 ? sumsOf(weight.codes, weight.zeroPoint, bias) : std::nullopt;
  const Geometry g = geometryOf(lowering, conv, input.data, weight.codes);
  const size_t rank = spatialRank(g) + 2;
  ir::Value* data = lowering.ordered(g.input, Lowering::channelLast(rank));

  std::vector<ir::Value*> parts;
  const int64_t inputChannels = conv.inputChannels();
  // Sums of int16 have 48 bits, which TOSA does not add.
  const bool addable = rank == 4 || (rank == 5 && input.data.dtype() == DType::Int8);
  if (!conv.transposed && addable && conv.groups > 1 && conv.groups == inputChannels) {
    parts.push_back(depthwiseGroups(lowering, g, data, std::move(bias), input.zeroPoint, weight.zeroPoint));
  } else {
    const int64_t in = inputChannels / conv.groups, out = channels / conv.groups;
    for (int64_t group = 0; group < conv.groups; ++group) {
      const auto axis = static_cast<int64_t>(rank) - 1;
      ir::Value* part = conv.groups == 1 ? data : lowering.emit().sliceAxis(data, axis, group * in, in);
      const Tensor kernel = conv.groups == 1  ? g.weight
                            : conv.transposed ? sliceOf(g.weight, 0, group * in, in)
                                              : sliceOf(g.weight, 0, group * out, out);
      Tensor groupBias = conv.groups == 1 ? bias : sliceOf(bias, 0, group * out, out);
      if (conv.transposed) {
        CARINA_TRY(part, transposedGroup(lowering, g, part, kernel, std::move(groupBias), input.zeroPoint,
                                         weight.zeroPoint));
      } else {
        part = plainGroup(lowering, g, part, kernel, std::move(groupBias), input.zeroPoint, weight.zeroPoint);
      }
      parts.push_back(part);
    }
  }

  // The result in aten order of the 2-d (3-d) form, then without the added dimensions.
  Shape shape = parts[0]->shape();
  const std::vector<int> order = Lowering::channelLast(rank);
  Shape full(rank);
  for (size_t i = 0; i < rank; ++i) full[static_cast<size_t>(order[i])] = shape[i];
  full[1] = channels;
  StoredTensor result{parts[0], Layout::ordered(full, order)};
  result.layout = *result.layout.viewed(node.result()->shape());
  QuantizedValue real{std::move(result), {}, 0, true, {}, {}, {}, {}};
  for (double scale : weightScales) real.scales.push_back(input.scale() * scale);
  real.within = within;
  if (parts.size() > 1) real.parts = parts;
  lowering.define(node.result(), std::move(real));
  return {};
}

/// The order in which the storage holds the features (the last dimension), if all other dimensions precede
/// them in order; the weight's columns can then be permuted instead of moving the data.
std::optional<std::vector<int>> featureAxes(const Layout& layout) {
  std::vector<int> outer;
  for (size_t d = 0; d + 1 < layout.dims.size(); ++d) {
    outer.insert(outer.end(), layout.dims[d].begin(), layout.dims[d].end());
  }
  for (size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] != static_cast<int>(i)) return std::nullopt;
  }
  return layout.dims.back();
}

/// Columns of weight [O, K], where K consists of `axes` in aten order, reordered to match the storage.
Tensor reorderedColumns(const Tensor& weight, const Layout& layout, const std::vector<int>& axes) {
  if (axes.size() < 2) return weight;
  Shape shape{weight.dim(0)};
  for (int axis : axes) shape.push_back(layout.axes[static_cast<size_t>(axis)]);
  std::vector<int> byStorage(axes.size());
  std::iota(byStorage.begin(), byStorage.end(), 0);
  std::sort(byStorage.begin(), byStorage.end(),
            [&](int a, int b) { return axes[static_cast<size_t>(a)] < axes[static_cast<size_t>(b)]; });
  std::vector<int> permutation{0};
  for (int i : byStorage) permutation.push_back(i + 1);
  return transposed(weight.reshaped(shape), permutation).reshaped(weight.shape());
}

}  // namespace

LinearOperands linearOperands(Lowering& lowering, const StoredTensor& input, const Tensor& weight) {
  const int64_t channels = weight.dim(0), features = weight.dim(1);
  const int64_t rows = numElements(input.shape()) / features;
  const auto axes = featureAxes(input.layout);
  ir::Value* data = axes ? input.value : lowering.rowMajor(input);
  const Tensor kernel = axes ? reorderedColumns(weight, input.layout, *axes) : weight;
  return {lowering.emit().reshape(data, {1, 1, rows, features}), kernel.reshaped({channels, 1, 1, features})};
}

namespace {

/// x W^T + b over the last dimension: a 1x1 convolution over [1, 1, rows, features].
Status lowerLinear(Lowering& lowering, const ir::Node& node) {
  const aten::Linear op = ir::cast<aten::Linear>(&node);
  CARINA_TRY(const QuantizedValue input, lowering.plainValue(op.input()));
  CARINA_TRY(const Weight weight, weightOf(lowering, op.weight(), 0));
  CARINA_TRY(Tensor bias, biasOf(lowering, op.bias(), weight.codes.dim(0), input.scale(), weight.scales,
                                 input.data.dtype()));
  Emitter& emit = lowering.emit();
  const LinearOperands operands = linearOperands(lowering, input.data, weight.codes);
  const std::optional<Interval> within = sumsOf(operands.weight, weight.zeroPoint, bias);
  ir::Value* kernel = emit.constant(operands.weight);
  ir::Value* result = emit.conv2d(operands.image, kernel, emit.constant(std::move(bias)), input.zeroPoint,
                                  weight.zeroPoint, {{1, 1}, {1, 1}, {0, 0, 0, 0}});
  QuantizedValue real{{result, Layout::rowMajor(node.result()->shape())}, {}, 0, true, {}, {}, {}, {}};
  real.within = within;
  for (double scale : weight.scales) real.scales.push_back(input.scale() * scale);
  lowering.define(node.result(), std::move(real));
  return {};
}

}  // namespace

void addConvolutionRules(Rules& rules) {
  for (const ir::OpDef* def :
       {&aten::Conv1d::def(), &aten::Conv2d::def(), &aten::Conv3d::def(), &aten::Conv1dPadding::def(),
        &aten::Conv2dPadding::def(), &aten::Conv3dPadding::def(), &aten::ConvTranspose1d::def(),
        &aten::ConvTranspose2dInput::def(), &aten::ConvTranspose3dInput::def(), &aten::Convolution::def()}) {
    rules[def] = lowerConvolution;
  }
  rules[&aten::Linear::def()] = lowerLinear;
}

}  // namespace carina::lower
