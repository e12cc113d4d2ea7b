// SPDX-License-Identifier: Apache-2.0
// Result types of joining, indexing, scattering and creating tensors.
#include <algorithm>
#include <cmath>

#include "aten/arguments.hpp"
#include "aten/infer.hpp"
#include "aten/movement_rules.hpp"
#include "aten/promotion.hpp"

namespace carina::aten::infer {
namespace {

Result<DType> jointType(const ir::Node& node) {
  Promotion promotion;
  for (const ir::Value* operand : node.operands()) promotion.add(operand);
  return promotion.type();
}

bool isIndexType(DType dtype) {
  return dtype == DType::Int64 || dtype == DType::Int32;
}

/// Constant indices must be within their dimension; `fromBack`: negative ones count from its end.
Status checkRange(const ir::Value* indices, int64_t extent, bool fromBack) {
  if (!indices->isConstant() || !isIndexType(indices->dtype())) return {};
  for (int64_t i = 0; i < indices->numElements(); ++i) {
    const int64_t index = indices->constant().integerAt(i);
    if (index >= extent || index < (fromBack ? -extent : 0))
      return fail(Code::InvalidOperator, "index {} is out of range for a dimension of size {}", index,
                  extent);
  }
  return {};
}

/// An index of gather and scatter must have the tensor's rank and may exceed its size only along `dim`.
Status checkAlong(const ir::Value* self, const ir::Value* indices, int64_t dim) {
  if (!isIndexType(indices->dtype()))
    return fail(Code::WrongElementType, "an index must be an integer tensor");
  if (indices->numElements() == 0) return {};
  if (std::max<int64_t>(indices->rank(), 1) != std::max<int64_t>(self->rank(), 1)) {
    return fail(Code::InvalidOperator, "the index has shape {} and the tensor {}: expected the same rank",
                shapeText(indices->shape()), shapeText(self->shape()));
  }
  for (int64_t d = 0; d < std::min(self->rank(), indices->rank()); ++d) {
    if (d != dim && indices->dim(d) > self->dim(d))
      return fail(Code::InvalidOperator, "an index of shape {} exceeds a tensor of shape {}",
                  shapeText(indices->shape()), shapeText(self->shape()));
  }
  return checkRange(indices, self->rank() == 0 ? 1 : self->dim(dim), false);
}

/// Checks the values that are written at the indices: one row per index, or one element per index.
Status checkSource(const ir::Value& source, const ir::Value* self, const ir::Value* indices, int64_t dim,
                   bool rows) {
  bool fits = true;
  if (rows) {
    Shape shape = self->shape();
    if (!shape.empty()) shape[static_cast<size_t>(dim)] = indices->numElements();
    fits = source.shape() == shape ||
           (shape.size() <= 1 && source.rank() <= 1 && source.numElements() == indices->numElements());
  } else if (indices->numElements() > 0) {
    fits = std::max<int64_t>(source.rank(), 1) == std::max<int64_t>(indices->rank(), 1);
    for (int64_t d = 0; fits && d < std::min(source.rank(), indices->rank()); ++d)
      fits = source.dim(d) >= indices->dim(d);
  }
  if (fits) return {};
  return fail(Code::InvalidOperator, "values of shape {} do not match indices of shape {} into {}",
              shapeText(source.shape()), shapeText(indices->shape()), shapeText(self->shape()));
}

DType numberType(const ir::Attribute& number) {
  if (std::holds_alternative<bool>(number)) return DType::Bool;
  return std::holds_alternative<int64_t>(number) ? DType::Int64 : DType::Float32;
}

}  // namespace

Types cat(const ir::Node& node) {
  if (node.operands().empty()) return fail(Code::InvalidOperator, "cat: expected at least one tensor");
  CARINA_TRY(const DType dtype, jointType(node));
  Shape shape{0};
  bool first = true;
  for (const ir::Value* operand : node.operands()) {
    if (operand->shape() == Shape{0}) continue;
    CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), operand->rank()));
    if (operand->rank() == 0) return fail(Code::InvalidOperator, "a scalar cannot be concatenated");
    if (first) {
      shape = operand->shape();
      first = false;
      continue;
    }
    Shape others = operand->shape(), expected = shape;
    if (others.size() != shape.size())
      return fail(Code::InvalidOperator, "cat: shapes {} and {} do not match", shapeText(shape),
                  shapeText(others));
    const auto d = static_cast<size_t>(dim);
    others[d] = expected[d] = 0;
    const auto sum = checkedAdd(shape[d], operand->shape()[d]);
    if (others != expected || !sum)
      return fail(Code::InvalidOperator, "cat: shapes {} and {} do not match", shapeText(shape),
                  shapeText(operand->shape()));
    shape[d] = *sum;
  }
  return oneResult(dtype, std::move(shape));
}

Types stack(const ir::Node& node) {
  if (node.operands().empty()) return fail(Code::InvalidOperator, "stack: expected at least one tensor");
  CARINA_TRY(const DType dtype, jointType(node));
  Shape shape = node.operands()[0]->shape();
  for (const ir::Value* operand : node.operands()) {
    if (operand->shape() != shape)
      return fail(Code::InvalidOperator, "stack: shapes {} and {} differ", shapeText(shape),
                  shapeText(operand->shape()));
  }
  CARINA_TRY(const int64_t dim,
             wrapDim(Arguments(node).integer("dim"), static_cast<int64_t>(shape.size()) + 1));
  shape.insert(shape.begin() + dim, static_cast<int64_t>(node.operands().size()));
  return oneResult(dtype, std::move(shape));
}

Types sliceScatter(const ir::Node& node) {
  CARINA_TRY(const Movement region, cut(node));
  if (broadcastShapes(node.operand(1)->shape(), region.result) != region.result) {
    return fail(Code::InvalidOperator, "{} does not fit the region {}", shapeText(node.operand(1)->shape()),
                shapeText(region.result));
  }
  return oneResult(node.operand(0)->dtype(), node.operand(0)->shape());
}

namespace {

bool isMask(const ir::Value& index) {
  return index.dtype() == DType::Bool || index.dtype() == DType::UInt8;
}

/// self[...] accepts masks and these types, like in PyTorch.
Status checkIndexing(const ir::Value& index) {
  if (isIndexType(index.dtype())) return {};
  return fail(Code::WrongElementType, "an index must be an int32 or int64 tensor, not {}",
              dtypeName(index.dtype()));
}

/// Checks indices that include masks: each index must have an index type, each mask the sizes of the
/// dimensions it covers.
Status checkMasks(const ir::Node& node) {
  const Shape& self = node.operand(0)->shape();
  size_t d = 0;
  for (const ir::Value* index : node.operandGroup(1)) {
    if (!index || !isMask(*index)) {
      if (index) CARINA_RETURN_IF_ERROR(checkIndexing(*index));
      ++d;
      continue;
    }
    for (const int64_t size : index->shape()) {
      if (d >= self.size() || self[d] != size) {
        return fail(Code::InvalidOperator, "a mask of shape {} does not fit into {}",
                    shapeText(index->shape()), shapeText(self));
      }
      ++d;
    }
  }
  if (d > self.size())
    return fail(Code::InvalidOperator, "there are more indices than {} has dimensions", shapeText(self));
  return {};
}

/// Shape of self[indices], from operand 0 and the operand group that follows.
Result<Shape> indexedShape(const ir::Node& node) {
  const ir::Value* self = node.operand(0);
  const auto indices = node.operandGroup(1);
  if (static_cast<int64_t>(indices.size()) > self->rank())
    return fail(Code::InvalidOperator, "{} indices are too many for a tensor of shape {}", indices.size(),
                shapeText(self->shape()));
  if (std::all_of(indices.begin(), indices.end(), [](const ir::Value* index) { return !index; }))
    return fail(Code::InvalidOperator, "{}: expected at least one index tensor", node.opName());
  Shape joint, before, after;
  bool adjacent = true, seen = false, ended = false;
  for (size_t d = 0; d < self->shape().size(); ++d) {
    const ir::Value* one_ = d < indices.size() ? indices[d] : nullptr;
    if (!one_) {
      ended = seen;
      (seen ? after : before).push_back(self->shape()[d]);
      continue;
    }
    if (isMask(*one_)) {
      return fail(
          Code::DependsOnValues,
          "the shape of the result depends on the values of a mask; use where() instead of indexing with a "
          "mask");
    }
    CARINA_RETURN_IF_ERROR(checkIndexing(*one_));
    if (ended) adjacent = false;
    seen = true;
    CARINA_RETURN_IF_ERROR(checkRange(one_, self->shape()[d], true));
    auto broadcast = broadcastShapes(joint, one_->shape());
    if (!broadcast) return fail(Code::InvalidOperator, "the indices do not broadcast");
    joint = *broadcast;
  }
  Shape shape;
  if (adjacent) shape = before;
  shape.insert(shape.end(), joint.begin(), joint.end());
  if (!adjacent) shape.insert(shape.end(), before.begin(), before.end());
  shape.insert(shape.end(), after.begin(), after.end());
  return shape;
}

}  // namespace

Types index(const ir::Node& node) {
  CARINA_TRY(Shape shape, indexedShape(node));
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types indexPut(const ir::Node& node) {
  const ir::Value* self = node.operand(0);
  const auto indices = node.operandGroup(1);
  const bool masked = std::any_of(indices.begin(), indices.end(),
                                  [](const ir::Value* index) { return index && isMask(*index); });
  if (masked) {
    CARINA_RETURN_IF_ERROR(checkMasks(node));
  } else {
    CARINA_TRY(const Shape place, indexedShape(node));
    const Shape& values = node.operand(2)->shape();
    if (broadcastShapes(values, place) != place) {
      return fail(Code::InvalidOperator,
                  "values of shape {} do not match the shape {} that the indices select", shapeText(values),
                  shapeText(place));
    }
  }
  return oneResult(self->dtype(), self->shape());
}

/// Requires one shift per dimension, or, without dimensions, one shift of the flattened tensor.
Types roll(const ir::Node& node) {
  const Arguments a(node);
  const ir::Ints shifts = a.ints("shifts"), dims = a.ints("dims");
  if (shifts.empty()) return fail(Code::InvalidOperator, "roll: expected at least one shift");
  if (dims.empty() ? shifts.size() != 1 : dims.size() != shifts.size())
    return fail(Code::InvalidOperator, "roll: {} shifts do not match {} dimensions", shifts.size(),
                dims.size());
  for (const int64_t dim : dims) CARINA_RETURN_IF_ERROR(checkDim(dim, node.operand(0)->rank()));
  return oneResult(node.operand(0)->dtype(), node.operand(0)->shape());
}

Types indexSelect(const ir::Node& node) {
  Shape shape = node.operand(0)->shape();
  const ir::Value* indices = node.operand(1);
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  if (indices->rank() > 1 || !isIndexType(indices->dtype()))
    return fail(Code::InvalidOperator, "index_select takes a vector of indices");
  CARINA_RETURN_IF_ERROR(checkRange(indices, shape.empty() ? 1 : shape[static_cast<size_t>(dim)], false));
  if (!shape.empty()) shape[static_cast<size_t>(dim)] = indices->numElements();
  return oneResult(node.operand(0)->dtype(), std::move(shape));
}

Types embedding(const ir::Node& node) {
  const ir::Value *weight = node.operand(0), *indices = node.operand(1);
  if (weight->rank() != 2 || !isIndexType(indices->dtype()))
    return fail(Code::InvalidOperator, "embedding takes a matrix and integer indices");
  CARINA_RETURN_IF_ERROR(checkRange(indices, weight->dim(0), false));
  Shape shape = indices->shape();
  shape.push_back(weight->dim(1));
  return oneResult(weight->dtype(), std::move(shape));
}

Types gather(const ir::Node& node) {
  const ir::Value *self = node.operand(0), *indices = node.operand(1);
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), self->rank()));
  CARINA_RETURN_IF_ERROR(checkAlong(self, indices, dim));
  return oneResult(self->dtype(), indices->shape());
}

Types scatter(const ir::Node& node) {
  const ir::Value* self = node.operand(0);
  if (Arguments(node).has("dim")) {
    CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), self->rank()));
    const int position = node.def().operandIndex("index");
    const ir::Value* indices = node.operand(static_cast<size_t>(position));
    const bool rows = node.opName().starts_with("aten.index_");  // otherwise one index per element
    if (!rows) {
      CARINA_RETURN_IF_ERROR(checkAlong(self, indices, dim));
    } else if (indices->rank() > 1 || !isIndexType(indices->dtype())) {
      return fail(Code::InvalidOperator, "{} takes a vector of indices", node.opName());
    } else {
      CARINA_RETURN_IF_ERROR(checkRange(indices, self->rank() == 0 ? 1 : self->dim(dim), true));
    }
    const int source = node.def().operandIndex(rows ? "source" : "src");
    if (source >= 0) {
      CARINA_RETURN_IF_ERROR(
          checkSource(*node.operand(static_cast<size_t>(source)), self, indices, dim, rows));
    }
  }
  return oneResult(self->dtype(), self->shape());
}

Types oneHot(const ir::Node& node) {
  if (!isInteger(node.operand(0)->dtype()))
    return fail(Code::WrongElementType, "one_hot: the classes have type {}, expected an integer type",
                dtypeName(node.operand(0)->dtype()))
        .withRemedy("convert them with .long()");
  const int64_t classes = Arguments(node).integer("num_classes", -1);
  if (classes <= 0)
    return fail(Code::DependsOnValues,
                "one_hot without num_classes has a shape that depends on values; pass num_classes");
  Shape shape = node.operand(0)->shape();
  shape.push_back(classes);
  return oneResult(DType::Int64, std::move(shape));
}

Types full(const ir::Node& node) {
  const Arguments a(node);
  if (a.has("n"))
    return oneResult(a.dtype().value_or(DType::Float32), {a.integer("n"), a.integer(a.has("m") ? "m" : "n")});
  const DType otherwise = a.has("fill_value") ? numberType(a.at("fill_value")) : DType::Float32;
  return oneResult(a.dtype().value_or(otherwise), a.ints("size"));
}
Types fullLike(const ir::Node& node) {
  return oneResult(Arguments(node).dtype().value_or(node.operand(0)->dtype()), node.operand(0)->shape());
}
Types newFull(const ir::Node& node) {
  return oneResult(Arguments(node).dtype().value_or(node.operand(0)->dtype()), Arguments(node).ints("size"));
}

Types arange(const ir::Node& node) {
  const Arguments a(node);
  const bool real = std::holds_alternative<double>(a.at("start")) ||
                    std::holds_alternative<double>(a.at("end")) ||
                    std::holds_alternative<double>(a.at("step"));
  const double step = a.real("step", 1), length = std::ceil((a.real("end") - a.real("start", 0)) / step);
  if (!(length >= 0) || length > 1e12)
    return fail(Code::InvalidOperator, "arange: there is no range from {} to {} in steps of {}",
                a.real("start", 0), a.real("end"), step);
  return oneResult(a.dtype().value_or(real ? DType::Float32 : DType::Int64), {static_cast<int64_t>(length)});
}

Types linspace(const ir::Node& node) {
  const Arguments a(node);
  if (a.integer("steps") < 0)
    return fail(Code::InvalidOperator, "linspace: expected a number of steps, got {}", a.integer("steps"));
  return oneResult(a.dtype().value_or(DType::Float32), {a.integer("steps")});
}

}  // namespace carina::aten::infer
