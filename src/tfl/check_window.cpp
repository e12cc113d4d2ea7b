// SPDX-License-Identifier: Apache-2.0
// Checks of operators that slide a window over an image or multiply matrices.
#include "tfl/check.hpp"
#include "tfl/geometry.hpp"
#include "tfl/results.hpp"

namespace carina::tfl::check {

namespace {

Status biasFits(const ir::Value* bias, int64_t channels) {
  if (!bias || bias->numElements() == channels) return {};
  return fail(Code::InvalidOperator, "the bias has shape {}, expected one value for each of {} channels",
              shapeText(bias->shape()), channels);
}

template <typename Op>
Result<Shape> convolved(const Op& op, int64_t channels) {
  const Shape& input = op.input()->shape();
  CARINA_TRY(const WindowAxis height,
             windowAxis(op.padding(), input[1], op.filter()->dim(1), op.strideH(), op.dilationHFactor()));
  CARINA_TRY(const WindowAxis width,
             windowAxis(op.padding(), input[2], op.filter()->dim(2), op.strideW(), op.dilationWFactor()));
  return Shape{input[0], height.outputs, width.outputs, channels};
}

}  // namespace

Status conv2d(const ir::Node& node) {
  const auto op = ir::cast<Conv2d>(&node);
  CARINA_RETURN_IF_ERROR(rankIs(op.input(), 4, "the input"));
  CARINA_RETURN_IF_ERROR(rankIs(op.filter(), 4, "the filter"));
  const int64_t channels = op.filter()->dim(0), depth = op.filter()->dim(3);
  const int64_t groups = op.input()->dim(3) / depth;
  if (op.input()->dim(3) % depth != 0 || channels % groups != 0) {
    return fail(Code::InvalidOperator, "a filter of shape {} does not match {} input channels",
                shapeText(op.filter()->shape()), op.input()->dim(3));
  }
  CARINA_RETURN_IF_ERROR(biasFits(op.bias(), channels));
  CARINA_TRY(const Shape shape, convolved(op, channels));
  return resultShape(node, shape);
}

Status depthwiseConv2d(const ir::Node& node) {
  const auto op = ir::cast<DepthwiseConv2d>(&node);
  CARINA_RETURN_IF_ERROR(rankIs(op.input(), 4, "the input"));
  CARINA_RETURN_IF_ERROR(rankIs(op.filter(), 4, "the filter"));
  const int64_t channels = op.filter()->dim(3);
  if (op.filter()->dim(0) != 1 || channels % op.input()->dim(3) != 0) {
    return fail(Code::InvalidOperator, "a filter of shape {} does not match {} input channels",
                shapeText(op.filter()->shape()), op.input()->dim(3));
  }
  CARINA_RETURN_IF_ERROR(biasFits(op.bias(), channels));
  CARINA_TRY(const Shape shape, convolved(op, channels));
  return resultShape(node, shape);
}

Status transposeConv(const ir::Node& node) {
  const auto op = ir::cast<TransposeConv>(&node);
  CARINA_RETURN_IF_ERROR(rankIs(op.input(), 4, "the input"));
  CARINA_RETURN_IF_ERROR(rankIs(op.filter(), 4, "the filter"));
  // Sizes computed at run time must be those that the file specifies for the result.
  ir::Ints shape = op.output()->shape();
  if (op.outputShape()->isConstant()) {
    CARINA_TRY(shape, constantInts(op.outputShape(), "output sizes"));
  }
  if (shape.size() != 4) return fail(Code::InvalidOperator, "expected 4 output sizes, got {}", shape.size());
  const Shape& filter = op.filter()->shape();
  if (filter[3] != op.input()->dim(3) || shape[3] != filter[0] || shape[0] != op.input()->dim(0))
    return fail(Code::InvalidOperator, "filter {}, input {} and output {} do not match", shapeText(filter),
                shapeText(op.input()->shape()), shapeText(shape));
  CARINA_RETURN_IF_ERROR(biasFits(op.bias(), filter[0]));
  // The output is the input of the convolution that this one reverses, which only determines the padding:
  // values outside the output are dropped, and positions that receive none get the bias.
  CARINA_TRY([[maybe_unused]] const WindowAxis height,
             windowAxis(op.padding(), shape[1], filter[1], op.strideH(), 1));
  CARINA_TRY([[maybe_unused]] const WindowAxis width,
             windowAxis(op.padding(), shape[2], filter[2], op.strideW(), 1));
  return resultShape(node, shape);
}

Status fullyConnected(const ir::Node& node) {
  const auto op = ir::cast<FullyConnected>(&node);
  CARINA_RETURN_IF_ERROR(rankIs(op.filter(), 2, "the filter"));
  const int64_t depth = op.filter()->dim(1), channels = op.filter()->dim(0);
  const int64_t elements = op.input()->numElements();
  if (op.weightsFormat() != 0) {
    return fail(Code::UnsupportedForm, "its weights are stored in the shuffled format {}", op.weightsFormat())
        .withRemedy("convert the network again, for the default kernels");
  }
  if (elements % depth != 0)
    return fail(Code::InvalidOperator, "{} elements cannot be divided into rows of {}", elements, depth);
  CARINA_RETURN_IF_ERROR(biasFits(op.bias(), channels));
  if (node.result()->numElements() != elements / depth * channels ||
      (node.result()->rank() > 0 && node.result()->shape().back() != channels)) {
    return fail(Code::InvalidOperator, "the result has shape {}, expected {} rows of {}",
                shapeText(node.result()->shape()), elements / depth, channels);
  }
  return {};
}

Status batchMatmul(const ir::Node& node) {
  const auto op = ir::cast<BatchMatmul>(&node);
  const auto split = [](const ir::Value* value, bool swapped) {
    Shape shape = value->shape();
    if (swapped) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return shape;
  };
  if (op.x()->rank() < 2 || op.y()->rank() < 2)
    return fail(Code::InvalidOperator, "expected matrices, got an operand with fewer than two dimensions");
  Shape a = split(op.x(), op.adjX()), b = split(op.y(), op.adjY());
  if (a.back() != b[b.size() - 2])
    return fail(Code::InvalidOperator, "matrices {} and {} do not match", shapeText(a), shapeText(b));
  const auto outer = broadcastShapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!outer)
    return fail(Code::InvalidOperator, "matrices {} and {} do not match", shapeText(a), shapeText(b));
  Shape shape = *outer;
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b.back());
  return resultShape(node, shape);
}

Status lstm(const ir::Node& node) {
  const auto op = ir::cast<UnidirectionalSequenceLstm>(&node);
  CARINA_RETURN_IF_ERROR(rankIs(op.input(), 3, "the input"));
  CARINA_RETURN_IF_ERROR(rankIs(op.output(), 3, "the result"));
  for (const ir::Value* needed :
       {op.inputToInputWeights(), op.recurrentToInputWeights(), op.inputGateBias()}) {
    if (!needed)
      return fail(Code::UnsupportedForm, "its input and forget gates are coupled")
          .withRemedy("use the standard LSTM");
  }
  for (const ir::Value* variant :
       {op.cellToInputWeights(), op.cellToForgetWeights(), op.cellToOutputWeights(), op.projectionWeights(),
        op.projectionBias(), op.inputLayerNorm(), op.forgetLayerNorm(), op.cellLayerNorm(),
        op.outputLayerNorm()}) {
    if (variant) {
      return fail(Code::UnsupportedForm, "it has peepholes, a projection or layer norms ('{}')",
                  variant->name)
          .withRemedy("use the standard LSTM");
    }
  }
  const int64_t batch = op.input()->dim(op.timeMajor() ? 1 : 0), units = op.output()->dim(2);
  for (const ir::Value* state : {op.outputState(), op.cellState()}) {
    if (state->numElements() != batch * units)
      return fail(Code::InvalidOperator, "a state of shape {} does not match {} sequences and {} units",
                  shapeText(state->shape()), batch, units);
  }
  return resultShape(node, {op.input()->dim(0), op.input()->dim(1), units});
}

Status pool2d(const ir::Node& node) {
  const AveragePool2d op(const_cast<ir::Node*>(&node));  // both pooling operators have the same attributes
  const ir::Value* input = node.operand(0);
  CARINA_RETURN_IF_ERROR(rankIs(input, 4, "the input"));
  if (node.result()->dtype() != input->dtype())
    return fail(Code::InvalidOperator, "the result's type changes from {} to {}", dtypeName(input->dtype()),
                dtypeName(node.result()->dtype()));
  CARINA_TRY(const WindowAxis height,
             windowAxis(op.padding(), input->dim(1), op.filterHeight(), op.strideH(), 1));
  CARINA_TRY(const WindowAxis width,
             windowAxis(op.padding(), input->dim(2), op.filterWidth(), op.strideW(), 1));
  return resultShape(node, {input->dim(0), height.outputs, width.outputs, input->dim(3)});
}

Status resize(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  CARINA_RETURN_IF_ERROR(rankIs(input, 4, "the input"));
  CARINA_TRY(const ir::Ints size, constantInts(node.operand(1), "sizes"));
  if (size.size() != 2) return fail(Code::InvalidOperator, "expected 2 sizes, got {}", size.size());
  if (node.attributeAs<bool>(0) && node.attributeAs<bool>(1))
    return fail(Code::UnsupportedForm, "align_corners and half_pixel_centers exclude each other");
  return resultShape(node, {input->dim(0), size[0], size[1], input->dim(3)});
}

}  // namespace carina::tfl::check
