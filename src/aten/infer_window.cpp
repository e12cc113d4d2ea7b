// SPDX-License-Identifier: Apache-2.0
// Result types of convolution, pooling, resizing, padding and normalisation.
#include "aten/arguments.hpp"
#include "aten/geometry.hpp"
#include "aten/infer.hpp"
#include "aten/promotion.hpp"
#include "aten/sampling.hpp"

namespace carina::aten::infer {
namespace {

/// Shape of the statistics of a normalisation over the last dimensions, which become 1.
Result<Shape> statisticsShape(const ir::Node& node) {
  Shape shape = node.operand(0)->shape();
  const ir::Ints normalized = Arguments(node).ints("normalized_shape");
  if (normalized.empty() || normalized.size() > shape.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), shape.rbegin())) {
    return fail(Code::InvalidOperator, "normalized_shape {} does not match the last dimensions of {}",
                shapeText(normalized), shapeText(shape));
  }
  for (size_t i = 1; i <= normalized.size(); ++i) shape[shape.size() - i] = 1;
  for (size_t i = 1; i < node.def().operands.size(); ++i) {
    const ir::Value* parameter = node.operand(i);
    if (parameter && parameter->shape() != normalized) {
      return fail(Code::InvalidOperator, "weight or bias has shape {}, expected {}",
                  shapeText(parameter->shape()), shapeText(normalized));
    }
  }
  return shape;
}

Status checkChannels(const ir::Node& node) {
  const ir::Value* input = node.operand(0);
  if (input->rank() < 2)
    return fail(Code::InvalidOperator, "{} needs a channel dimension, got {}", node.opName(),
                shapeText(input->shape()));
  for (size_t i = 1; i < node.def().operands.size(); ++i) {
    const ir::Value* parameter = node.operand(i);
    if (parameter && parameter->numElements() != input->dim(1)) {
      return fail(Code::InvalidOperator, "{} has {} elements for {} channels", node.def().operands[i].name,
                  parameter->numElements(), input->dim(1));
    }
  }
  return {};
}

Result<Shape> adaptiveShape(const ir::Node& node) {
  Shape shape = node.operand(0)->shape();
  const std::string_view name = node.opName();
  const size_t n = name.find("1d") != std::string_view::npos   ? 1
                   : name.find("3d") != std::string_view::npos ? 3
                                                               : 2;
  if (shape.size() != n + 1 && shape.size() != n + 2)
    return fail(Code::InvalidOperator, "the operator does not support an input of shape {}",
                shapeText(shape));
  CARINA_TRY(const ir::Ints sizes, Arguments(node).ints("output_size", n));
  for (size_t i = 0; i < n; ++i) {
    if (sizes[i] < 0) return fail(Code::InvalidOperator, "the output size {} is negative", sizes[i]);
    if (shape[shape.size() - n + i] == 0) return fail(Code::InvalidOperator, "the pooled dimension is empty");
    shape[shape.size() - n + i] = sizes[i];
  }
  return shape;
}

/// Rejects means of integers: no part of the compiler implements their rounding.
Status checkMeanOfFloats(const ir::Node& node) {
  const DType dtype = node.operand(0)->dtype();
  if (isFloat(dtype)) return {};
  return fail(Code::WrongElementType, "{} needs floating-point values, got {}", node.opName(),
              dtypeName(dtype))
      .withRemedy("convert the operand with .float() in the model");
}

}  // namespace

Types conv(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkFactors(node));
  CARINA_TRY(ConvGeometry geometry, convGeometry(node));
  return oneResult(node.operand(0)->dtype(), std::move(geometry.output));
}
Types convolution(const ir::Node& node) {
  return conv(node);
}
Types convTranspose(const ir::Node& node) {
  return conv(node);
}

Types avgPool(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkMeanOfFloats(node));
  return maxPool(node);
}
Types maxPool(const ir::Node& node) {
  CARINA_TRY(PoolGeometry geometry, poolGeometry(node));
  return oneResult(node.operand(0)->dtype(), std::move(geometry.output));
}
Types maxPoolIndices(const ir::Node& node) {
  CARINA_TRY(PoolGeometry geometry, poolGeometry(node));
  return std::vector<ir::Type>{{node.operand(0)->dtype(), geometry.output}, {DType::Int64, geometry.output}};
}

Types adaptiveAvgPool(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkMeanOfFloats(node));
  CARINA_TRY(Shape shape, adaptiveShape(node));
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}
Types adaptiveMaxPool(const ir::Node& node) {
  CARINA_TRY(const Shape shape, adaptiveShape(node));
  return std::vector<ir::Type>{{node.operand(0)->dtype(), shape}, {DType::Int64, shape}};
}

Types upsample(const ir::Node& node) {
  const DType dtype = node.operand(0)->dtype();
  if (!isFloat(dtype) && dtype != DType::UInt8)
    return fail(Code::WrongElementType, "{} is not defined on {}", node.opName(), dtypeName(dtype));
  CARINA_TRY(ResizeGeometry geometry, resizeGeometry(node));
  return oneResult(node.operand(0)->dtype(), std::move(geometry.output));
}

Types gridSampler(const ir::Node& node) {
  const Shape &input = node.operand(0)->shape(), &grid = node.operand(1)->shape();
  const bool fits = (input.size() == 4 || input.size() == 5) && grid.size() == input.size() &&
                    grid.back() == static_cast<int64_t>(input.size()) - 2 && grid[0] == input[0];
  if (!fits)
    return fail(Code::InvalidOperator, "grid_sampler: input {} and grid {} do not match", shapeText(input),
                shapeText(grid));
  CARINA_RETURN_IF_ERROR(gridSampling(node));
  Shape shape{input[0], input[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

namespace {

/// Checks padding by elements of the tensor itself: the number of pads must match the operator, and
/// reflection must not repeat elements.
Status checkPadMode(const ir::Node& node, const ir::Ints& pads) {
  const std::string_view name = node.opName();
  const std::string mode = name.starts_with("aten.reflection")    ? "reflect"
                           : name.starts_with("aten.replication") ? "replicate"
                                                                  : Arguments(node).text("mode", "constant");
  if (mode == "constant") return {};
  const Shape& shape = node.operand(0)->shape();
  const size_t spatial = name.find("1d") != std::string_view::npos   ? 1
                         : name.find("2d") != std::string_view::npos ? 2
                         : name.find("3d") != std::string_view::npos ? 3
                                                                     : pads.size() / 2;
  if (pads.size() != 2 * spatial || spatial == 0 || shape.size() < spatial + 1)
    return fail(Code::InvalidOperator, "{} paddings do not match {} of shape {}", pads.size(), name,
                shapeText(shape));
  for (size_t i = 0; i < pads.size(); ++i) {
    const int64_t size = shape[shape.size() - 1 - i / 2];
    const bool fits = mode == "reflect" ? pads[i] < size : mode == "circular" ? pads[i] <= size : size > 0;
    if (!fits)
      return fail(Code::InvalidOperator, "padding by {} in mode {} exceeds a dimension of {}", pads[i], mode,
                  size);
  }
  return {};
}

}  // namespace

Types pad(const ir::Node& node) {
  Shape shape = node.operand(0)->shape();
  const Arguments arguments(node);
  const ir::Ints pads = arguments.ints(arguments.has("pad") ? "pad" : "padding");
  if (pads.size() % 2 != 0 || pads.size() / 2 > shape.size())
    return fail(Code::InvalidOperator, "{} paddings do not match shape {}", pads.size(), shapeText(shape));
  CARINA_RETURN_IF_ERROR(checkPadMode(node, pads));
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    int64_t& size = shape[shape.size() - 1 - i];
    const auto sum = checkedAdd(size, pads[2 * i]);
    const auto total = sum ? checkedAdd(*sum, pads[2 * i + 1]) : std::nullopt;
    if (!total || *total < 0)
      return fail(Code::InvalidOperator, "padding by {} and {} leaves no elements", pads[2 * i],
                  pads[2 * i + 1]);
    size = *total;
  }
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types batchNorm(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkChannels(node));
  return oneResult(node.operand(0)->dtype(), node.operand(0)->shape());
}
Types nativeBatchNorm(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkChannels(node));
  const DType dtype = node.operand(0)->dtype();
  return std::vector<ir::Type>{{dtype, node.operand(0)->shape()}, {dtype, {0}}, {dtype, {0}}};
}

Types layerNorm(const ir::Node& node) {
  if (Arguments(node).has("num_groups")) {
    CARINA_RETURN_IF_ERROR(checkChannels(node));
    const int64_t groups = Arguments(node).integer("num_groups");
    if (groups <= 0 || node.operand(0)->dim(1) % groups != 0) {
      return fail(Code::InvalidOperator, "{} channels cannot be divided into {} groups",
                  node.operand(0)->dim(1), groups);
    }
  } else if (auto shape = statisticsShape(node); !shape) {
    return std::move(shape).error();
  }
  return oneResult(node.operand(0)->dtype(), node.operand(0)->shape());
}
Types nativeLayerNorm(const ir::Node& node) {
  CARINA_TRY(const Shape statistics, statisticsShape(node));
  const DType dtype = node.operand(0)->dtype();
  return std::vector<ir::Type>{{dtype, node.operand(0)->shape()}, {dtype, statistics}, {dtype, statistics}};
}
Types nativeGroupNorm(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkChannels(node));
  const DType dtype = node.operand(0)->dtype();
  const int64_t groups = Arguments(node).integer("group");
  if (groups <= 0 || node.operand(0)->dim(1) % groups != 0) {
    return fail(Code::InvalidOperator, "{} channels cannot be divided into {} groups",
                node.operand(0)->dim(1), groups);
  }
  const Shape& input = node.operand(0)->shape();
  const int64_t area = numElements(Shape(input.begin() + 2, input.end()));
  const Arguments sizes(node);
  if (sizes.integer("N") != input[0] || sizes.integer("C") != input[1] || sizes.integer("HxW") != area)
    return fail(Code::InvalidOperator, "N, C and HxW do not match the sizes of {}", shapeText(input));
  const Shape statistics{input[0], groups};
  return std::vector<ir::Type>{{dtype, node.operand(0)->shape()}, {dtype, statistics}, {dtype, statistics}};
}

}  // namespace carina::aten::infer
