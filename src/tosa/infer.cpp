// SPDX-License-Identifier: Apache-2.0
#include "tosa/infer.hpp"

#include <algorithm>

#include "tosa/ops.hpp"

namespace carina::tosa {

std::optional<std::vector<int64_t>> constantInts(const ir::Value* value) {
  if (!value || !value->isConstant() || isFloat(value->dtype())) return std::nullopt;
  std::vector<int64_t> values(static_cast<size_t>(value->numElements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = value->constant().integerAt(static_cast<int64_t>(i));
  return values;
}

std::optional<int64_t> constantInt(const ir::Value* value) {
  auto values = constantInts(value);
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

namespace infer {
namespace {

Types one(DType dtype, Shape shape) { return std::vector<ir::Type>{{dtype, std::move(shape)}}; }

ir::Node* mutableNode(const ir::Node& node) { return const_cast<ir::Node*>(&node); }

Status needRank(const ir::Value* value, int64_t rank, std::string_view what) {
  if (value->rank() == rank) return {};
  return fail("{} has rank {}, must be {}", what, value->rank(), rank);
}

Status needCount(const ir::Ints& values, size_t count, std::string_view what) {
  if (values.size() == count) return {};
  return fail("{} has {} values, must have {}", what, values.size(), count);
}

Result<std::vector<int64_t>> needConstant(const ir::Value* value, size_t count, std::string_view what) {
  auto values = constantInts(value);
  if (!values) return fail("{} must be constant", what);
  if (values->size() != count) return fail("{} has {} values, must have {}", what, values->size(), count);
  return std::move(*values);
}

/// Windows that move by `stride` in steps that come out even: numerator / stride + 1.
Result<int64_t> windowCount(int64_t numerator, int64_t stride, std::string_view axis) {
  if (stride < 1) return fail("stride {} along {} must be at least 1", stride, axis);
  if (numerator < 0) return fail("the kernel is larger than the padded input along {}", axis);
  if (numerator % stride != 0) {
    return fail("windows do not come out even along {}: {} is not a multiple of stride {}", axis, numerator, stride);
  }
  return numerator / stride + 1;
}

Result<DType> accumulated(const ir::Node& node, DType input) {
  if (input == DType::Int8 || input == DType::Int4) return DType::Int32;
  if (input == DType::Int16) return DType::Int48;
  if (input == DType::Float16 || input == DType::BFloat16) {
    // Half precision may be accumulated in its own type or in fp32: what the node records holds.
    return node.results().empty() ? input : node.result()->dtype();
  }
  if (isFloat(input)) return input;
  return fail("input of type {} cannot be accumulated", dtypeName(input));
}

/// Output size of a convolution along spatial dimension `i` of `rank`: input i + 1, kernel kernelFirst + i.
Result<Shape> convolved(const ir::Value* input, const ir::Value* weight, int64_t kernelFirst, const ir::Ints& pad,
                        const ir::Ints& stride, const ir::Ints& dilation, int64_t spatial) {
  const auto count = static_cast<size_t>(spatial);
  CARINA_RETURN_IF_ERROR(needCount(pad, 2 * count, "pad"));
  CARINA_RETURN_IF_ERROR(needCount(stride, count, "stride"));
  CARINA_RETURN_IF_ERROR(needCount(dilation, count, "dilation"));
  static constexpr std::string_view kAxes2[] = {"height", "width"}, kAxes3[] = {"depth", "height", "width"};
  Shape sizes;
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(i);
    if (pad[2 * i] < 0 || pad[2 * i + 1] < 0) return fail("pad must not be negative");
    if (dilation[i] < 1) return fail("dilation must be at least 1");
    const int64_t reach = (weight->dim(kernelFirst + at) - 1) * dilation[i];
    CARINA_TRY(const int64_t size, windowCount(input->dim(1 + at) - 1 + pad[2 * i] + pad[2 * i + 1] - reach, stride[i],
                                               spatial == 2 ? kAxes2[i] : kAxes3[i]));
    sizes.push_back(size);
  }
  return sizes;
}

Status checkBias(const ir::Value* bias, int64_t channels) {
  CARINA_RETURN_IF_ERROR(needRank(bias, 1, "bias"));
  if (bias->dim(0) == 1 || bias->dim(0) == channels) return {};
  return fail("bias has {} values for {} output channels", bias->dim(0), channels);
}

Result<int64_t> axisOf(int64_t axis, const ir::Value* value) {
  if (axis < 0 || axis >= std::max<int64_t>(value->rank(), 1)) {
    return fail("axis {} is outside rank {}", axis, value->rank());
  }
  return axis;
}

Types broadcastTo(DType dtype, const ir::Value* a, const ir::Value* b) {
  if (a->rank() != b->rank()) return fail("operands of rank {} and {}; TOSA broadcasts equal ranks only", a->rank(), b->rank());
  auto shape = broadcastShapes(a->shape(), b->shape());
  if (!shape) return fail("shapes {} and {} do not broadcast", shapeText(a->shape()), shapeText(b->shape()));
  return one(dtype, std::move(*shape));
}

}  // namespace

Types argmax(const ir::Node& node) {
  const Argmax op(mutableNode(node));
  CARINA_TRY(const int64_t axis, axisOf(op.axis(), op.input()));
  Shape shape = op.input()->shape();
  if (shape.empty()) return fail("ARGMAX of a scalar");
  shape.erase(shape.begin() + axis);
  return one(DType::Int32, std::move(shape));
}

Types broadcast(const ir::Node& node) {
  return broadcastTo(node.operand(0)->dtype(), node.operand(0), node.operand(1));
}

Types compare(const ir::Node& node) { return broadcastTo(DType::Bool, node.operand(0), node.operand(1)); }

Types multiply(const ir::Node& node) {
  const DType dtype = node.operand(0)->dtype();
  return broadcastTo(dtype == DType::Int8 || dtype == DType::Int16 ? DType::Int32 : dtype, node.operand(0), node.operand(1));
}

Types concat(const ir::Node& node) {
  const Concat op(mutableNode(node));
  const auto inputs = op.input1();
  if (inputs.empty()) return fail("CONCAT of nothing");
  CARINA_TRY(const int64_t axis, axisOf(op.axis(), inputs.front()));
  Shape shape = inputs.front()->shape();
  if (shape.empty()) return fail("CONCAT of scalars");
  const auto at = static_cast<size_t>(axis);
  for (const ir::Value* input : inputs.subspan(1)) {
    if (input->rank() != inputs.front()->rank()) return fail("CONCAT of different ranks");
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != at && input->shape()[i] != inputs.front()->shape()[i]) return fail("CONCAT operands differ in dimension {}", i);
    }
    auto sum = checkedAdd(shape[at], input->shape()[at]);
    if (!sum) return fail("CONCAT result is too large");
    shape[at] = *sum;
  }
  return one(inputs.front()->dtype(), std::move(shape));
}

Types conv2d(const ir::Node& node) {
  const Conv2d op(mutableNode(node));
  CARINA_RETURN_IF_ERROR(needRank(op.input(), 4, "input"));
  CARINA_RETURN_IF_ERROR(needRank(op.weight(), 4, "weight"));
  if (op.weight()->dim(3) != op.input()->dim(3)) {
    return fail("weight has {} input channels, the input {}", op.weight()->dim(3), op.input()->dim(3));
  }
  CARINA_RETURN_IF_ERROR(checkBias(op.bias(), op.weight()->dim(0)));
  CARINA_TRY(const Shape hw, convolved(op.input(), op.weight(), 1, op.pad(), op.stride(), op.dilation(), 2));
  CARINA_TRY(const DType dtype, accumulated(node, op.input()->dtype()));
  return one(dtype, {op.input()->dim(0), hw[0], hw[1], op.weight()->dim(0)});
}

Types conv3d(const ir::Node& node) {
  const Conv3d op(mutableNode(node));
  CARINA_RETURN_IF_ERROR(needRank(op.input(), 5, "input"));
  CARINA_RETURN_IF_ERROR(needRank(op.weight(), 5, "weight"));
  if (op.weight()->dim(4) != op.input()->dim(4)) {
    return fail("weight has {} input channels, the input {}", op.weight()->dim(4), op.input()->dim(4));
  }
  CARINA_RETURN_IF_ERROR(checkBias(op.bias(), op.weight()->dim(0)));
  CARINA_TRY(const Shape dhw, convolved(op.input(), op.weight(), 1, op.pad(), op.stride(), op.dilation(), 3));
  CARINA_TRY(const DType dtype, accumulated(node, op.input()->dtype()));
  return one(dtype, {op.input()->dim(0), dhw[0], dhw[1], dhw[2], op.weight()->dim(0)});
}

Types depthwiseConv2d(const ir::Node& node) {
  const DepthwiseConv2d op(mutableNode(node));
  CARINA_RETURN_IF_ERROR(needRank(op.input(), 4, "input"));
  CARINA_RETURN_IF_ERROR(needRank(op.weight(), 4, "weight"));
  if (op.weight()->dim(2) != op.input()->dim(3)) {
    return fail("weight has {} input channels, the input {}", op.weight()->dim(2), op.input()->dim(3));
  }
  auto channels = checkedMul(op.weight()->dim(2), op.weight()->dim(3));
  if (!channels) return fail("too many output channels");
  CARINA_RETURN_IF_ERROR(checkBias(op.bias(), *channels));
  CARINA_TRY(const Shape hw, convolved(op.input(), op.weight(), 0, op.pad(), op.stride(), op.dilation(), 2));
  CARINA_TRY(const DType dtype, accumulated(node, op.input()->dtype()));
  return one(dtype, {op.input()->dim(0), hw[0], hw[1], *channels});
}

Types transposeConv2d(const ir::Node& node) {
  const TransposeConv2d op(mutableNode(node));
  CARINA_RETURN_IF_ERROR(needRank(op.input(), 4, "input"));
  CARINA_RETURN_IF_ERROR(needRank(op.weight(), 4, "weight"));
  CARINA_RETURN_IF_ERROR(needCount(op.outPad(), 4, "out_pad"));
  CARINA_RETURN_IF_ERROR(needCount(op.stride(), 2, "stride"));
  if (op.weight()->dim(3) != op.input()->dim(3)) {
    return fail("weight has {} input channels, the input {}", op.weight()->dim(3), op.input()->dim(3));
  }
  CARINA_RETURN_IF_ERROR(checkBias(op.bias(), op.weight()->dim(0)));
  Shape hw;
  for (size_t i = 0; i < 2; ++i) {
    const auto at = static_cast<int64_t>(i);
    if (op.stride()[i] < 1) return fail("stride must be at least 1");
    hw.push_back((op.input()->dim(1 + at) - 1) * op.stride()[i] + op.outPad()[2 * i] + op.outPad()[2 * i + 1] +
                 op.weight()->dim(1 + at));
    if (hw.back() < 1) return fail("out_pad leaves nothing of the output");
  }
  CARINA_TRY(const DType dtype, accumulated(node, op.input()->dtype()));
  return one(dtype, {op.input()->dim(0), hw[0], hw[1], op.weight()->dim(0)});
}

Types fft2d(const ir::Node& node) {
  return std::vector<ir::Type>{node.operand(0)->type, node.operand(0)->type};
}

Types rfft2d(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(needRank(node.operand(0), 3, "input_real"));
  Shape shape = node.operand(0)->shape();
  shape[2] = shape[2] / 2 + 1;
  const ir::Type type{node.operand(0)->dtype(), shape};
  return std::vector<ir::Type>{type, type};
}

Types gather(const ir::Node& node) {
  const Gather op(mutableNode(node));
  CARINA_RETURN_IF_ERROR(needRank(op.values(), 3, "values"));
  CARINA_RETURN_IF_ERROR(needRank(op.indices(), 2, "indices"));
  if (op.values()->dim(0) != op.indices()->dim(0)) return fail("values and indices differ in batch size");
  return one(op.values()->dtype(), {op.values()->dim(0), op.indices()->dim(1), op.values()->dim(2)});
}

Types matmul(const ir::Node& node) {
  const Matmul op(mutableNode(node));
  CARINA_RETURN_IF_ERROR(needRank(op.a(), 3, "A"));
  CARINA_RETURN_IF_ERROR(needRank(op.b(), 3, "B"));
  if (op.a()->dim(0) != op.b()->dim(0) || op.a()->dim(2) != op.b()->dim(1)) {
    return fail("shapes {} and {} cannot be multiplied", shapeText(op.a()->shape()), shapeText(op.b()->shape()));
  }
  CARINA_TRY(const DType dtype, accumulated(node, op.a()->dtype()));
  return one(dtype, {op.a()->dim(0), op.a()->dim(1), op.b()->dim(2)});
}

Types pad(const ir::Node& node) {
  const Pad op(mutableNode(node));
  Shape shape = op.input1()->shape();
  CARINA_TRY(const auto padding, needConstant(op.padding(), 2 * shape.size(), "padding"));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (padding[2 * i] < 0 || padding[2 * i + 1] < 0) return fail("padding must not be negative");
    auto before = checkedAdd(shape[i], padding[2 * i]);
    auto both = before ? checkedAdd(*before, padding[2 * i + 1]) : std::nullopt;
    if (!both) return fail("padded size overflows");
    shape[i] = *both;
  }
  return one(op.input1()->dtype(), std::move(shape));
}

Types pool2d(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  CARINA_RETURN_IF_ERROR(needRank(input, 4, "input"));
  const auto& kernel = node.attributeAs<ir::Ints>(0);
  const auto& stride = node.attributeAs<ir::Ints>(1);
  const auto& padding = node.attributeAs<ir::Ints>(2);
  CARINA_RETURN_IF_ERROR(needCount(kernel, 2, "kernel"));
  CARINA_RETURN_IF_ERROR(needCount(stride, 2, "stride"));
  CARINA_RETURN_IF_ERROR(needCount(padding, 4, "pad"));
  Shape hw;
  for (size_t i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || padding[2 * i] < 0 || padding[2 * i + 1] < 0) return fail("kernel or pad out of range");
    CARINA_TRY(const int64_t size,
               windowCount(input->dim(1 + static_cast<int64_t>(i)) + padding[2 * i] + padding[2 * i + 1] - kernel[i],
                           stride[i], i == 0 ? "height" : "width"));
    hw.push_back(size);
  }
  return one(input->dtype(), {input->dim(0), hw[0], hw[1], input->dim(3)});
}

Types reduce(const ir::Node& node) {
  CARINA_TRY(const int64_t axis, axisOf(node.attributeAs<int64_t>(0), node.operand(0)));
  Shape shape = node.operand(0)->shape();
  if (shape.empty()) return fail("reduction of a scalar");
  shape[static_cast<size_t>(axis)] = 1;
  return one(node.operand(0)->dtype(), std::move(shape));
}

Types reshape(const ir::Node& node) {
  const Reshape op(mutableNode(node));
  auto shape = constantInts(op.shape());
  if (!shape) return fail("shape must be constant");
  auto count = checkedNumElements(*shape);
  if (!count || *count != op.input1()->numElements()) {
    return fail("{} cannot be reshaped to {}", shapeText(op.input1()->shape()), shapeText(*shape));
  }
  return one(op.input1()->dtype(), std::move(*shape));
}

Types resize(const ir::Node& node) {
  const Resize op(mutableNode(node));
  const ir::Value* input = op.input();
  CARINA_RETURN_IF_ERROR(needRank(input, 4, "input"));
  CARINA_TRY(const auto scale, needConstant(op.scale(), 4, "scale"));
  CARINA_TRY(const auto offset, needConstant(op.offset(), 2, "offset"));
  CARINA_TRY(const auto border, needConstant(op.border(), 2, "border"));
  Shape hw;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t numerator = scale[2 * i], denominator = scale[2 * i + 1];
    if (numerator < 1 || denominator < 1 || numerator > (1 << 11)) return fail("scale out of range");
    CARINA_TRY(const int64_t size,
               windowCount((input->dim(1 + static_cast<int64_t>(i)) - 1) * numerator - offset[i] + border[i], denominator,
                           i == 0 ? "height" : "width"));
    hw.push_back(size);
  }
  DType dtype = input->dtype();
  if (op.mode() == ResizeMode::BILINEAR && dtype == DType::Int8) dtype = DType::Int32;
  if (op.mode() == ResizeMode::BILINEAR && input->dtype() == DType::Int16) dtype = DType::Int48;
  return one(dtype, {input->dim(0), hw[0], hw[1], input->dim(3)});
}

Types sameAsFirst(const ir::Node& node) { return std::vector<ir::Type>{node.operand(0)->type}; }

Types select(const ir::Node& node) {
  CARINA_TRY(const auto branches, broadcastTo(node.operand(1)->dtype(), node.operand(1), node.operand(2)));
  if (node.operand(0)->rank() != node.operand(1)->rank()) return fail("condition and operands differ in rank");
  auto shape = broadcastShapes(node.operand(0)->shape(), branches.front().shape);
  if (!shape) return fail("condition {} does not broadcast", shapeText(node.operand(0)->shape()));
  return one(branches.front().dtype, std::move(*shape));
}

Types slice(const ir::Node& node) {
  const Slice op(mutableNode(node));
  const size_t rank = op.input1()->shape().size();
  CARINA_TRY(const auto start, needConstant(op.start(), rank, "start"));
  CARINA_TRY(auto size, needConstant(op.size(), rank, "size"));
  for (size_t i = 0; i < rank; ++i) {
    auto end = checkedAdd(start[i], size[i]);
    if (start[i] < 0 || size[i] < 1 || !end || *end > op.input1()->shape()[i]) {
      return fail("[{}, +{}) is outside dimension {} of size {}", start[i], size[i], i, op.input1()->shape()[i]);
    }
  }
  return one(op.input1()->dtype(), std::move(size));
}

Types table(const ir::Node& node) {
  return one(node.operand(0)->dtype() == DType::Int16 ? DType::Int32 : DType::Int8, node.operand(0)->shape());
}

Types tile(const ir::Node& node) {
  const Tile op(mutableNode(node));
  Shape shape = op.input1()->shape();
  CARINA_TRY(const auto multiples, needConstant(op.multiples(), shape.size(), "multiples"));
  for (size_t i = 0; i < shape.size(); ++i) {
    auto size = multiples[i] >= 1 ? checkedMul(shape[i], multiples[i]) : std::nullopt;
    if (!size) return fail("multiple {} of dimension {} is out of range", multiples[i], i);
    shape[i] = *size;
  }
  return one(op.input1()->dtype(), std::move(shape));
}

Types transpose(const ir::Node& node) {
  const Transpose op(mutableNode(node));
  const Shape& from = op.input1()->shape();
  CARINA_RETURN_IF_ERROR(needCount(op.perms(), from.size(), "perms"));
  Shape shape(from.size());
  std::vector<bool> seen(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t p = op.perms()[i];
    if (p < 0 || p >= op.input1()->rank() || seen[static_cast<size_t>(p)]) return fail("perms is not a permutation");
    seen[static_cast<size_t>(p)] = true;
    shape[i] = from[static_cast<size_t>(p)];
  }
  return one(op.input1()->dtype(), std::move(shape));
}

}  // namespace infer
}  // namespace carina::tosa
