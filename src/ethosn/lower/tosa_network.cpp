// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ethosn/lower/lowering.hpp"
#include "ethosn/support/support.hpp"

namespace carina::ethosn {
namespace {

constexpr int64_t kMaxDenseWeights = int64_t{1} << 24;  // of a depthwise filter that becomes dense

/// Adds leading ones.
Result<Shape> fourDimensions(const carina::Shape& shape) {
  if (shape.size() > 4)
    return fail(Code::NoIntegerForm, "a tensor has {} dimensions, an Ethos-N supports four", shape.size());
  Shape out{1, 1, 1, 1};
  for (size_t i = 0; i < shape.size(); ++i) out[4 - shape.size() + i] = static_cast<uint32_t>(shape[i]);
  return out;
}

std::optional<ConvolutionNode> convolutionOf(const ir::Node* node) {
  if (const auto conv = ir::dynCast<tosa::Conv2d>(node)) {
    return ConvolutionNode{conv.input(),  conv.weight(), conv.bias(),   conv.inputZp(),  conv.weightZp(),
                           conv.output(), conv.pad(),    conv.stride(), conv.dilation(), false};
  }
  if (const auto conv = ir::dynCast<tosa::DepthwiseConv2d>(node)) {
    return ConvolutionNode{conv.input(),  conv.weight(), conv.bias(),   conv.inputZp(),  conv.weightZp(),
                           conv.output(), conv.pad(),    conv.stride(), conv.dilation(), true};
  }
  return std::nullopt;
}

/// Whether the bytes of an input are unsigned: in TOSA, the RESCALE that reads it determines this.
bool takenUnsigned(const ir::Value& input) {
  if (input.dtype() == DType::UInt8) return true;
  return std::any_of(input.uses().begin(), input.uses().end(), [](const ir::Use& use) {
    const auto rescale = ir::dynCast<tosa::Rescale>(use.node);
    return rescale && rescale.inputUnsigned();
  });
}

}  // namespace

int64_t filterSize(int64_t size) {
  for (int64_t there : {1, 2, 3, 5, 7, 9}) {
    if (size <= there) return there;
  }
  return size;
}

namespace {

/// Whether the node, on the way from a feature map to a feature map, produces a tensor that an Ethos-N has no
/// form for, with more than four dimensions or with batches: the RESHAPE that ends the chain determines the
/// effect of all. Other chains fail at their end.
bool isInsidePattern(const ir::Node& node) {
  const bool isReshape = ir::isa<tosa::Reshape>(&node), isTranspose = ir::isa<tosa::Transpose>(&node);
  if (!isReshape && !isTranspose) return false;
  const ir::Value& made = *node.result();
  if (made.rank() > 4) return true;
  if (made.rank() < 4 || made.dim(0) == 1 || !made.hasOneUse()) return false;
  const ir::Node& next = *made.uses()[0].node;
  const ir::Value& from = *node.operand(0);
  if (isReshape) return from.rank() == 4 && from.dim(0) == 1 && ir::isa<tosa::Transpose>(&next);
  return from.producer() != nullptr && ir::isa<tosa::Reshape>(from.producer()) &&
         isInsidePattern(*from.producer()) && ir::isa<tosa::Reshape>(&next);
}

}  // namespace

Result<int32_t> Lowering::tensorOf(const ir::Value* value) const {
  const auto found = tensors_.find(value);
  if (found != tensors_.end()) return found->second;
  if (value->isConstant()) return fail(Code::NoIntegerForm, "an operand is constant");
  return fail(Code::NoIntegerForm, "its input is {}, but an Ethos-N keeps only 8 bits between operations",
              dtypeName(value->dtype()));
}

std::vector<int32_t> Lowering::append(const ir::Node& node, Operation operation, std::vector<int32_t> inputs,
                                      std::vector<uint8_t> weights, std::vector<int32_t> biases) {
  std::vector<TensorInfo> infos;
  infos.reserve(inputs.size());
  for (int32_t input : inputs) infos.push_back(info(input));
  NetworkOperation made;
  made.name = sourceName(node);
  for (TensorInfo& out : outputsOf(operation, infos))
    made.outputs.push_back(network_.addTensor(std::move(out)));
  made.operation = std::move(operation);
  made.inputs = std::move(inputs);
  made.weights = std::move(weights);
  made.biases = std::move(biases);
  network_.operations.push_back(std::move(made));
  return network_.operations.back().outputs;
}

Result<int32_t> Lowering::seenAs(const ir::Node& node, const ir::Value* value, int64_t zeroPoint,
                                 float scale) {
  CARINA_TRY(const int32_t tensor, tensorOf(value));
  Operation op;
  op.op = Operator::ReinterpretQuantization;
  op.outputQuantization = {static_cast<int32_t>(zeroPoint), {scale}, {}};
  if (info(tensor).quantization == op.outputQuantization) return tensor;
  return append(node, op, {tensor})[0];
}

namespace {

/// Sizes of a filter in TOSA's order, which differs for depthwise convolutions.
struct Filter {
  Filter(const ConvolutionNode& conv)
      : depthwise(conv.depthwise),
        rows(conv.weight->dim(depthwise ? 0 : 1)),
        columns(conv.weight->dim(depthwise ? 1 : 2)),
        inputs(conv.weight->dim(depthwise ? 2 : 3)),
        outputs(depthwise ? inputs * conv.weight->dim(3) : conv.weight->dim(0)),
        height((rows - 1) * conv.dilation[0] + 1),
        width((columns - 1) * conv.dilation[1] + 1) {}
  bool depthwise;
  int64_t rows, columns, inputs, outputs;
  int64_t height, width;  // including the zeros of a dilation
  /// A depthwise convolution with several outputs per input becomes an ordinary one, with zeros for the other
  /// inputs.
  bool dense() const { return depthwise && outputs != inputs; }
};

/// The weights in the order of `shape` (HWIO or HWIM), with zeros in all other places.
std::vector<uint8_t> filterBytes(const Filter& filter, const ConvolutionNode& conv, const Shape& shape,
                                 uint8_t zero) {
  std::vector<uint8_t> bytes(elements(shape), zero);
  const Tensor& weights = conv.weight->constant();
  const int64_t each = filter.depthwise ? filter.outputs / filter.inputs : filter.outputs;
  for (int64_t y = 0; y < filter.rows; ++y) {
    for (int64_t x = 0; x < filter.columns; ++x) {
      for (int64_t i = 0; i < filter.inputs; ++i) {
        const int64_t row = (y * conv.dilation[0] * shape[1] + x * conv.dilation[1]) * filter.inputs + i;
        for (int64_t o = 0; o < each; ++o) {
          const int64_t from = filter.depthwise
                                   ? ((y * filter.columns + x) * filter.inputs + i) * each + o
                                   : ((o * filter.rows + y) * filter.columns + x) * filter.inputs + i;
          const int64_t to = row * shape[3] + (filter.dense() ? i * each : 0) + o;
          bytes[static_cast<size_t>(to)] = static_cast<uint8_t>(weights.integerAt(from));
        }
      }
    }
  }
  return bytes;
}

}  // namespace

/// Filters of a size that the MCE lacks are padded with zeros below and to the right.
Status Lowering::convolution(const ir::Node& node, const ConvolutionNode& conv,
                             const tosa::Rescale& rescale) {
  if (!conv.weight->isConstant() || !conv.bias->isConstant())
    return fail(Code::NoIntegerForm, "its weights are not constant");
  if (conv.weight->dtype() != DType::Int8)
    return fail(Code::NoIntegerForm, "its weights are {}, not int8", dtypeName(conv.weight->dtype()));
  const bool single = conv.output->dim(1) == 1 && conv.output->dim(2) == 1;
  const Filter filter(conv);
  const bool depthwise = conv.depthwise && !filter.dense();
  int64_t height = filterSize(filter.height), width = filterSize(filter.width);
  if (depthwise) height = width = std::max(height, width);
  // There are no depthwise filters above 7; one that covers the whole map is a vector product.
  if (depthwise && height > 7) {
    const bool dilated = filter.height != filter.rows || filter.width != filter.columns;
    if (single && !dilated && conv.input->dim(1) == filter.rows && conv.input->dim(2) == filter.columns) {
      return wholeMap(node, conv, rescale);
    }
    return fail(Code::NoIntegerForm, "its depthwise filter of {}x{} exceeds 7x7", filter.height,
                filter.width);
  }
  if (height * width * filter.inputs > kMaxDenseWeights / filter.outputs && filter.dense()) {
    return fail(Code::NoIntegerForm,
                "its depthwise filter computes {} outputs from {} inputs, which would need {} weights",
                filter.outputs, filter.inputs, height * width * filter.inputs * filter.outputs);
  }
  Operation op;
  op.op = depthwise ? Operator::DepthwiseConvolution : Operator::Convolution;
  op.weights.format = depthwise ? DataFormat::Hwim : DataFormat::Hwio;
  op.weights.type = DataType::S8;
  const auto size = [](int64_t value) { return static_cast<uint32_t>(value); };
  op.weights.shape = {size(height), size(width), size(filter.inputs), size(depthwise ? 1 : filter.outputs)};
  op.weights.quantization = {static_cast<int32_t>(valueOf(conv.weightZp)), ratiosOf(rescale), {}};
  const bool perChannel = rescale.perChannel();
  if (perChannel) op.weights.quantization.dim = depthwise ? 2U : 3U;
  op.bias = {{1, 1, 1, size(filter.outputs)}, DataType::S32, DataFormat::Nhwc, {0, ratiosOf(rescale), {}}};
  if (perChannel) op.bias.quantization.dim = 3;
  op.stride = single ? Extent{1, 1} : Extent{size(conv.stride[1]), size(conv.stride[0])};
  op.padding = {size(conv.pad[0]), size(conv.pad[1] + height - filter.height), size(conv.pad[2]),
                size(conv.pad[3] + width - filter.width)};
  op.outputQuantization = {static_cast<int32_t>(valueOf(rescale.outputZp())), {1.0F}, {}};

  const uint8_t zero = static_cast<uint8_t>(static_cast<int8_t>(op.weights.quantization.zeroPoint));
  std::vector<uint8_t> bytes = filterBytes(filter, conv, op.weights.shape, zero);
  const int64_t biasCount = conv.bias->numElements();
  std::vector<int32_t> biases;
  for (int64_t o = 0; o < filter.outputs; ++o) {
    biases.push_back(static_cast<int32_t>(conv.bias->constant().integerAt(biasCount == 1 ? 0 : o)));
  }
  CARINA_TRY(const int32_t input, seenAs(node, conv.input, valueOf(conv.inputZp), 1.0F));
  const int32_t made = append(node, std::move(op), {input}, std::move(bytes), std::move(biases))[0];
  if (info(made).shape[1] != conv.output->dim(1) || info(made).shape[2] != conv.output->dim(2)) {
    return fail(Code::NoIntegerForm, "its output of {}x{} leaves rows or columns of the input unused",
                conv.output->dim(1), conv.output->dim(2));
  }
  define(rescale.output(), made);
  return {};
}

/// A depthwise filter that covers the whole map: a vector product, in which every output has weights for its
/// own channel only.
Status Lowering::wholeMap(const ir::Node& node, const ConvolutionNode& conv, const tosa::Rescale& rescale) {
  const int64_t positions = conv.input->dim(1) * conv.input->dim(2), channels = conv.input->dim(3);
  if (conv.weight->dim(3) != 1 || rescale.perChannel()) {
    return fail(Code::NoIntegerForm, "its depthwise filter of {}x{} has scales per channel and exceeds 7x7",
                conv.input->dim(1), conv.input->dim(2));
  }
  const int64_t total = positions * channels * channels;
  if (total > kMaxDenseWeights) {
    if (const auto ratio = ratioOfMean(conv, rescale)) return meanOfMap(node, conv, rescale, *ratio);
    return fail(Code::NoIntegerForm,
                "its depthwise filter over a whole map of {}x{}x{} would need {} weights", conv.input->dim(1),
                conv.input->dim(2), channels, total);
  }
  CARINA_TRY(int32_t input, seenAs(node, conv.input, valueOf(conv.inputZp), 1.0F));
  Operation flat;
  flat.op = Operator::Reshape;
  flat.newShape = {1, 1, 1, static_cast<uint32_t>(positions * channels)};
  input = append(node, flat, {input})[0];
  Operation op;
  op.op = Operator::FullyConnected;
  op.weights = {{1, 1, static_cast<uint32_t>(positions * channels), static_cast<uint32_t>(channels)},
                DataType::S8,
                DataFormat::Hwio,
                {static_cast<int32_t>(valueOf(conv.weightZp)), ratiosOf(rescale), {}}};
  op.bias = {{1, 1, 1, static_cast<uint32_t>(channels)},
             DataType::S32,
             DataFormat::Nhwc,
             {0, ratiosOf(rescale), {}}};
  op.outputQuantization = {static_cast<int32_t>(valueOf(rescale.outputZp())), {1.0F}, {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(total), static_cast<uint8_t>(valueOf(conv.weightZp)));
  std::vector<int32_t> biases;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < positions; ++p) {
      bytes[static_cast<size_t>((p * channels + c) * channels + c)] =
          static_cast<uint8_t>(conv.weight->constant().integerAt(p * channels + c));
    }
    biases.push_back(
        static_cast<int32_t>(conv.bias->constant().integerAt(conv.bias->numElements() == 1 ? 0 : c)));
  }
  define(rescale.output(), append(node, std::move(op), {input}, std::move(bytes), std::move(biases))[0]);
  return {};
}

/// The PLE only adds: a subtrahend is negated first, exactly. A value, pixel or plane is stretched to the
/// other operand.
Status Lowering::addition(const ir::Node& node, const ir::Value* left, const ir::Value* right, bool subtracts,
                          const tosa::Rescale& rescale) {
  const int sign = subtracts ? -1 : 1;
  const auto first = wideOperandOf(left), second = wideOperandOf(right);
  if (!first || !second || rescale.perChannel())
    return fail(Code::NoIntegerForm, "it does not add two requantized tensors");
  if (second->isConstant()) return sumWithConstant(node, *first, 1, *second, sign, rescale);
  if (first->isConstant()) return sumWithConstant(node, *second, sign, *first, 1, rescale);
  const double to = static_cast<double>(ratiosOf(rescale)[0]);
  const auto scaled = [&](const WideOperand& operand) {
    return seenAs(node, operand.codes, operand.zeroPoint, static_cast<float>(operand.ratio * to));
  };
  CARINA_TRY(int32_t a, scaled(*first));
  CARINA_TRY(int32_t b, scaled(*second));
  CARINA_RETURN_IF_ERROR(stretchToEachOther(node, "adds", a, b));
  if (subtracts) {
    const float scale = info(b).quantization.scales[0];
    const int32_t zero = -1 - info(b).quantization.zeroPoint;
    b = line(node, b, {-1, {0}, zero});
    Operation seen;
    seen.op = Operator::ReinterpretQuantization;
    seen.outputQuantization = {zero, {scale}, {}};
    b = append(node, seen, {b})[0];
  }
  Operation op;
  op.op = Operator::Addition;
  op.outputQuantization = {static_cast<int32_t>(valueOf(rescale.outputZp())), {1.0F}, {}};
  define(rescale.output(), append(node, op, {a, b})[0]);
  return {};
}

Status Lowering::rescale(const ir::Node& node, const tosa::Rescale& rescale) {
  // To 32 bits: handled by the operation that follows.
  if (rescale.output()->dtype() == DType::Int32) return {};
  if (dtypeSize(rescale.output()->dtype()) != 1) {
    return fail(Code::NoIntegerForm, "it produces {}{}", rescale.outputUnsigned() ? "unsigned " : "",
                dtypeName(rescale.output()->dtype()));
  }
  if (dtypeSize(rescale.input()->dtype()) == 1) return requantization(node, rescale);
  const ir::Node* producer = rescale.input()->producer();
  if (producer == nullptr || rescale.input()->dtype() != DType::Int32) {
    return fail(Code::NoIntegerForm, "its input is {}", dtypeName(rescale.input()->dtype()));
  }
  if (valueOf(rescale.inputZp()) != 0) return fail(Code::NoIntegerForm, "its 32-bit input has a zero point");
  if (const auto conv = convolutionOf(producer)) return convolution(*producer, *conv, rescale);
  if (const auto add = ir::dynCast<tosa::Add>(producer))
    return addition(*producer, add.input1(), add.input2(), false, rescale);
  if (const auto sub = ir::dynCast<tosa::Sub>(producer))
    return addition(*producer, sub.input1(), sub.input2(), true, rescale);
  if (const auto mul = ir::dynCast<tosa::Mul>(producer)) return product(*producer, mul, rescale);
  if (const auto conv = ir::dynCast<tosa::TransposeConv2d>(producer))
    return transposeConvolution(*producer, conv, rescale);
  if (const auto resized = ir::dynCast<tosa::Resize>(producer)) return resize(*producer, resized, &rescale);
  return fail(Code::NoIntegerForm, "the preceding {} has no Ethos-N counterpart", producer->opName());
}

Status Lowering::pool(const ir::Node& node, const ir::Value* input, const ir::Value* output,
                      const ir::Ints& kernel, const ir::Ints& stride, const ir::Ints& pad, PoolingType type) {
  CARINA_TRY(const int32_t tensor, tensorOf(input));
  const auto size = [](int64_t value) { return static_cast<uint32_t>(value); };
  Operation op;
  op.op = Operator::Pooling;
  op.pooling = type;
  op.window = {size(kernel[1]), size(kernel[0])};
  op.stride = {size(stride[1]), size(stride[0])};
  if (output->dim(1) == 1 && output->dim(2) == 1) op.stride = {1, 1};
  op.padding = {size(pad[0]), size(pad[1]), size(pad[2]), size(pad[3])};
  define(output, append(node, op, {tensor})[0]);
  return {};
}

Status Lowering::reshape(const ir::Node& node, const ir::Value* input, const ir::Value* output) {
  CARINA_TRY(const int32_t tensor, tensorOf(input));
  CARINA_TRY(const Shape shape, fourDimensions(output->shape()));
  if (shape[0] != 1) return fail(Code::NoIntegerForm, "its batch size is {}", shape[0]);
  if (info(tensor).shape == shape) {
    define(output, tensor);
    return {};
  }
  Operation op;
  op.op = Operator::Reshape;
  op.newShape = shape;
  define(output, append(node, op, {tensor})[0]);
  return {};
}

/// Moving dimensions of size 1 moves no byte.
Status Lowering::transpose(const ir::Node& node, const tosa::Transpose& transpose) {
  const ir::Ints& perms = transpose.perms();
  std::vector<int64_t> moved;
  for (int64_t axis : perms) {
    if (transpose.input1()->dim(axis) != 1) moved.push_back(axis);
  }
  if (std::is_sorted(moved.begin(), moved.end()))
    return reshape(node, transpose.input1(), transpose.output());
  CARINA_TRY(const int32_t tensor, tensorOf(transpose.input1()));
  if (info(tensor).shape[0] != 1)
    return fail(Code::NoIntegerForm, "its batch size is {}", info(tensor).shape[0]);
  Operation op;
  op.op = Operator::Transpose;
  const size_t lead = 4 - perms.size();
  for (size_t i = 0; i < perms.size(); ++i)
    op.permutation[lead + i] = static_cast<uint32_t>(lead) + static_cast<uint32_t>(perms[i]);
  if (op.permutation[0] != 0) return fail(Code::NoIntegerForm, "it moves the batch dimension");
  define(transpose.output(), append(node, op, {tensor})[0]);
  return {};
}

Status Lowering::slice(const ir::Node& node, const tosa::Slice& slice) {
  CARINA_TRY(int32_t tensor, tensorOf(slice.input1()));
  const ir::Ints start = valuesOf(slice.start()), size = valuesOf(slice.size());
  for (size_t i = 0; i < start.size(); ++i) {
    const uint32_t axis = static_cast<uint32_t>(4 - start.size() + i);
    const uint32_t whole = info(tensor).shape[axis];
    if (static_cast<uint32_t>(size[i]) == whole) continue;
    Operation op;
    op.op = Operator::Split;
    op.axis = axis;
    const auto first = static_cast<uint32_t>(start[i]), count = static_cast<uint32_t>(size[i]);
    if (first > 0) op.sizes.push_back(first);
    op.sizes.push_back(count);
    if (first + count < whole) op.sizes.push_back(whole - first - count);
    tensor = append(node, op, {tensor})[first > 0 ? 1 : 0];
  }
  define(slice.output(), tensor);
  return {};
}

Status Lowering::concat(const ir::Node& node, const tosa::Concat& concat) {
  Operation op;
  op.op = Operator::Concatenation;
  op.axis = static_cast<uint32_t>(4 - concat.output()->rank() + concat.axis());
  std::vector<int32_t> inputs;
  for (const ir::Value* value : concat.input1()) {
    CARINA_TRY(const int32_t tensor, tensorOf(value));
    // Codes are joined unchanged.
    CARINA_TRY(const int32_t plain,
               seenAs(node, value, info(inputs.empty() ? tensor : inputs[0]).quantization.zeroPoint, 1.0F));
    inputs.push_back(plain);
  }
  op.outputQuantization = info(inputs[0]).quantization;
  define(concat.output(), append(node, op, std::move(inputs))[0]);
  return {};
}

Status Lowering::pad(const ir::Node& node, const tosa::Pad& pad) {
  const ir::Ints sizes = valuesOf(pad.padding());
  std::array<uint32_t, 8> sides{};
  for (size_t i = 0; i < sizes.size(); ++i) sides[8 - sizes.size() + i] = static_cast<uint32_t>(sizes[i]);
  if (sides[0] + sides[1] + sides[6] + sides[7] > 0)
    return fail(Code::NoIntegerForm, "it pads the batch or the channels");
  CARINA_TRY(const int32_t input, seenAs(node, pad.input1(), valueOf(pad.padConst()), 1.0F));
  Operation op;
  op.op = Operator::StandalonePadding;
  op.padding = {sides[2], sides[3], sides[4], sides[5]};
  define(pad.output(), append(node, op, {input})[0]);
  return {};
}

Status Lowering::clamp(const ir::Node& node, const tosa::Clamp& clamp) {
  CARINA_TRY(const int32_t tensor, tensorOf(clamp.input()));
  Operation op;
  op.op = Operator::Relu;
  op.lower = static_cast<int32_t>(ir::scalarInt(clamp.minVal()));
  op.upper = static_cast<int32_t>(ir::scalarInt(clamp.maxVal()));
  define(clamp.output(), append(node, op, {tensor})[0]);
  return {};
}

Status Lowering::lower(const ir::Node& node) {
  const auto resized = ir::dynCast<tosa::Resize>(&node);
  if (resized && resized.output()->dtype() == DType::Int8) return resize(node, resized, nullptr);
  if (convolutionOf(&node) || ir::isa<tosa::Add>(&node) || ir::isa<tosa::Sub>(&node) ||
      ir::isa<tosa::Mul>(&node) || ir::isa<tosa::TransposeConv2d>(&node) || resized) {
    // Handled by the RESCALE that follows.
    const ir::Value* result = node.result();
    const bool requantized = result->hasOneUse() && ir::isa<tosa::Rescale>(result->uses()[0].node);
    if (resized) CARINA_RETURN_IF_ERROR(checkDoubles(resized));
    return requantized ? Status()
                       : fail(Code::NoIntegerForm, "its 32-bit result is not requantized immediately");
  }
  // Part of an operand: the operation that uses it reports errors.
  if (ir::isa<tosa::LogicalLeftShift>(&node) && node.result()->dtype() == DType::Int32) return {};
  if (const auto op = ir::dynCast<tosa::Rescale>(&node)) return rescale(node, op);
  if (const auto op = ir::dynCast<tosa::MaxPool2d>(&node)) {
    return pool(node, op.input(), op.output(), op.kernel(), op.stride(), op.pad(), PoolingType::Max);
  }
  if (const auto op = ir::dynCast<tosa::AvgPool2d>(&node)) {
    if (valueOf(op.inputZp()) != valueOf(op.outputZp()))
      return fail(Code::NoIntegerForm, "average pooling changes the zero point");
    if (!averages(op)) return averageByFilter(node, op);
    return pool(node, op.input(), op.output(), op.kernel(), op.stride(), op.pad(), PoolingType::Average);
  }
  if (isInsidePattern(node)) return {};
  if (const auto op = ir::dynCast<tosa::Reshape>(&node)) {
    const bool ends = op.input1()->producer() != nullptr && isInsidePattern(*op.input1()->producer());
    return ends ? moveByFilter(node, op) : reshape(node, op.input1(), op.output());
  }
  if (const auto op = ir::dynCast<tosa::Transpose>(&node)) return transpose(node, op);
  if (const auto op = ir::dynCast<tosa::Table>(&node)) return table(node, op);
  if (const auto op = ir::dynCast<tosa::Slice>(&node)) return slice(node, op);
  if (const auto op = ir::dynCast<tosa::Concat>(&node)) return concat(node, op);
  if (const auto op = ir::dynCast<tosa::Pad>(&node)) return pad(node, op);
  if (const auto op = ir::dynCast<tosa::Clamp>(&node)) return clamp(node, op);
  if (const auto op = ir::dynCast<tosa::Identity>(&node)) {
    CARINA_TRY(const int32_t tensor, tensorOf(op.input1()));
    define(op.output(), tensor);
    return {};
  }
  return fail(Code::NoIntegerForm, "it has no Ethos-N counterpart");
}

Result<Network> Lowering::run() {
  std::vector<Diagnostic> problems;
  const auto note = [&problems](const Error& error, const std::string& place, std::string_view what) {
    for (Diagnostic diagnostic : error.diagnostics()) {
      diagnostic.message = fmt::format("{} cannot run on an Ethos-N: {}", what, diagnostic.message);
      diagnostic.place = place;
      problems.push_back(std::move(diagnostic));
    }
  };
  for (const ir::Value* input : graph_.inputs()) {
    const Result<Shape> shape = fourDimensions(input->shape());
    if (!shape.ok() || dtypeSize(input->dtype()) != 1 || input->dtype() == DType::Bool) {
      note(shape.ok() ? fail(Code::NoIntegerForm, "it is {}, not int8", dtypeName(input->dtype()))
                      : shape.error(),
           input->name, "an input");
      continue;
    }
    const int32_t zero = input->quantization ? static_cast<int32_t>(input->quantization->zeroPoints[0]) : 0;
    const DataType type = takenUnsigned(*input) ? DataType::U8 : DataType::S8;
    define(input, network_.addTensor({*shape, type, DataFormat::Nhwc, {zero, {1.0F}, {}}}));
    network_.inputs.push_back(tensors_[input]);
  }
  for (const ir::Node* node : graph_.nodes()) {
    // Nothing can be said about a node whose input failed.
    const bool follows = std::any_of(node->operands().begin(), node->operands().end(),
                                     [this](const ir::Value* value) { return failed_.count(value) != 0; });
    const Status status = follows ? Status() : lower(*node);
    if (!status.ok()) note(status.error(), sourceName(*node), node->opName());
    if (status.ok() && !follows) continue;
    for (const ir::Value* result : node->results()) failed_.insert(result);
  }
  if (!problems.empty()) return Error(std::move(problems));
  for (const ir::Value* output : graph_.outputs()) {
    CARINA_TRY(const int32_t tensor, tensorOf(output));
    network_.outputs.push_back(tensor);
  }
  return std::move(network_);
}

std::string sourceName(const ir::Node& node) {
  if (node.location() && !node.location()->name.empty()) return node.location()->name;
  const std::string& name = node.result()->name;
  return name.empty() ? std::string(node.opName()) : name;
}

Result<Network> networkOfTosa(const ir::Graph& graph,
                              std::unordered_map<const ir::Value*, int32_t>* tensors) {
  Lowering lowering(graph);
  CARINA_TRY(Network network, lowering.run());
  if (tensors != nullptr) *tensors = lowering.tensors();
  return network;
}

}  // namespace carina::ethosn
