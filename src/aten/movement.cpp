// SPDX-License-Identifier: Apache-2.0
#include "aten/movement.hpp"

#include <numeric>

#include "aten/arguments.hpp"
#include "aten/infer.hpp"
#include "aten/movement_rules.hpp"
#include "aten/ops.hpp"

namespace carina::aten {

bool Movement::isReshape(const Shape& operandShape) const {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return offset == 0 && expected == carina::numElements(operandShape);
}

Movement identityMovement(const Shape& shape, size_t operand) {
  return {operand, shape, rowMajorStrides(shape), 0, shape};
}

namespace {

using Moves = Result<std::optional<std::vector<Movement>>>;
std::optional<std::vector<Movement>> only(Movement movement) {
  return std::vector<Movement>{std::move(movement)};
}

Result<Movement> reshaped(const Shape& from, Shape to) {
  const auto count = carina::numElements(from);
  int64_t known = 1;
  int inferred = -1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
      continue;
    }
    const auto product = to[i] < 0 ? std::nullopt : checkedMul(known, to[i]);
    if (!product)
      return fail(Code::InvalidOperator, "{} cannot be viewed as {}", shapeText(from), shapeText(to));
    known = *product;
  }
  if (inferred >= 0 && known > 0) {
    to[static_cast<size_t>(inferred)] = count / known;
    known *= count / known;
  }
  if (known != count || (inferred >= 0 && to[static_cast<size_t>(inferred)] < 0)) {
    return fail(Code::InvalidOperator, "{} cannot be viewed as {}", shapeText(from), shapeText(to));
  }
  Movement movement = identityMovement(from);
  movement.result = std::move(to);
  return movement;
}

Result<Movement> permuted(const Shape& from, const ir::Ints& order) {
  if (order.size() != from.size())
    return fail(Code::InvalidOperator, "{} dimensions are given for a tensor of shape {}", order.size(),
                shapeText(from));
  const Shape strides = rowMajorStrides(from);
  std::vector<bool> used(from.size(), false);
  Movement movement;
  for (int64_t raw : order) {
    CARINA_TRY(const int64_t dim, wrapDim(raw, static_cast<int64_t>(from.size())));
    const auto d = static_cast<size_t>(dim);
    if (used[d]) return fail(Code::InvalidOperator, "dimension {} is named twice", raw);
    used[d] = true;
    movement.shape.push_back(from[d]);
    movement.strides.push_back(strides[d]);
  }
  movement.result = movement.shape;
  return movement;
}

Result<Movement> swapped(const Shape& from, int64_t a, int64_t b) {
  if (from.empty()) return identityMovement(from);
  const auto rank = static_cast<int64_t>(from.size());
  ir::Ints order(from.size());
  std::iota(order.begin(), order.end(), 0);
  CARINA_TRY(const int64_t first, wrapDim(a, rank));
  CARINA_TRY(const int64_t second, wrapDim(b, rank));
  std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
  return permuted(from, order);
}

Result<Movement> reversed(const Shape& from) {
  ir::Ints order(from.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return permuted(from, order);
}

Result<Movement> moved(const Shape& from, const ir::Ints& source, const ir::Ints& destination) {
  const auto rank = static_cast<int64_t>(from.size());
  if (source.size() != destination.size())
    return fail(Code::InvalidOperator, "expected as many sources as destinations");
  ir::Ints order(from.size(), -1);
  std::vector<bool> taken(from.size(), false);
  for (size_t i = 0; i < source.size(); ++i) {
    CARINA_TRY(const int64_t s, wrapDim(source[i], rank));
    CARINA_TRY(const int64_t d, wrapDim(destination[i], rank));
    if (from.empty()) return identityMovement(from);
    order[static_cast<size_t>(d)] = s;
    taken[static_cast<size_t>(s)] = true;
  }
  size_t next = 0;
  for (int64_t& slot : order) {
    if (slot >= 0) continue;
    while (next < taken.size() && taken[next]) ++next;
    if (next == taken.size()) return fail(Code::InvalidOperator, "a dimension is moved twice");
    slot = static_cast<int64_t>(next++);
  }
  return permuted(from, order);
}

Result<Movement> expanded(const Shape& from, const Shape& to) {
  if (to.size() < from.size())
    return fail(Code::InvalidOperator, "{} cannot be expanded to {}", shapeText(from), shapeText(to));
  const Shape strides = rowMajorStrides(from);
  const size_t lead = to.size() - from.size();
  Movement movement;
  for (size_t i = 0; i < to.size(); ++i) {
    const bool added = i < lead;
    const int64_t size = added ? 1 : from[i - lead];
    const int64_t wanted = to[i] == -1 && !added ? size : to[i];
    if (wanted < 0 || (size != 1 && size != wanted))
      return fail(Code::InvalidOperator, "{} cannot be expanded to {}", shapeText(from), shapeText(to));
    movement.shape.push_back(wanted);
    movement.strides.push_back(size == 1 ? 0 : strides[i - lead]);
  }
  if (!checkedNumElements(movement.shape)) return fail(Code::TooLarge, "{} is too large", shapeText(to));
  movement.result = movement.shape;
  return movement;
}

Result<Movement> repeated(const Shape& from, ir::Ints repeats, bool padRepeats) {
  if (padRepeats && repeats.size() < from.size())
    repeats.insert(repeats.begin(), from.size() - repeats.size(), 1);
  if (repeats.size() < from.size())
    return fail(Code::InvalidOperator, "{} repeats are too few for a tensor of rank {}", repeats.size(),
                from.size());
  const Shape strides = rowMajorStrides(from);
  const size_t lead = repeats.size() - from.size();
  Movement movement;
  for (size_t i = 0; i < repeats.size(); ++i) {
    const int64_t size = i < lead ? 1 : from[i - lead];
    const auto total = repeats[i] < 0 ? std::nullopt : checkedMul(size, repeats[i]);
    if (!total) return fail(Code::InvalidOperator, "invalid repeat count {}", repeats[i]);
    movement.shape.insert(movement.shape.end(), {repeats[i], size});
    movement.strides.insert(movement.strides.end(), {0, i < lead ? 0 : strides[i - lead]});
    movement.result.push_back(*total);
  }
  if (!checkedNumElements(movement.result))
    return fail(Code::TooLarge, "{} is too large", shapeText(movement.result));
  return movement;
}

Result<Movement> interleaved(const Shape& from, int64_t repeats, std::optional<int64_t> dim) {
  const Shape shape = dim ? from : Shape{carina::numElements(from)};
  CARINA_TRY(const int64_t wrapped, wrapDim(dim.value_or(0), static_cast<int64_t>(shape.size())));
  const auto d = static_cast<size_t>(wrapped);
  Movement movement = identityMovement(shape.empty() ? Shape{1} : shape);
  const auto total = repeats < 0 ? std::nullopt : checkedMul(movement.shape[d], repeats);
  if (!total) return fail(Code::InvalidOperator, "invalid repeat count {}", repeats);
  movement.shape.insert(movement.shape.begin() + wrapped + 1, repeats);
  movement.strides.insert(movement.strides.begin() + wrapped + 1, 0);
  movement.result[d] = *total;
  if (!checkedNumElements(movement.result))
    return fail(Code::TooLarge, "{} is too large", shapeText(movement.result));
  return movement;
}

/// Removes dimensions of size 1: all of them, or only the named ones (named dimensions of other sizes are
/// kept).
Result<Movement> squeezed(const Shape& from, const std::optional<ir::Ints>& dims) {
  std::vector<bool> named(from.size(), !dims);
  for (int64_t raw : dims.value_or(ir::Ints{})) {
    CARINA_TRY(const int64_t dim, wrapDim(raw, static_cast<int64_t>(from.size())));
    if (!from.empty()) named[static_cast<size_t>(dim)] = true;
  }
  Movement movement = identityMovement(from);
  movement.result.clear();
  for (size_t i = 0; i < from.size(); ++i) {
    if (!named[i] || from[i] != 1) movement.result.push_back(from[i]);
  }
  return movement;
}

Result<Movement> unsqueezed(const Shape& from, int64_t dim) {
  CARINA_TRY(const int64_t at, wrapDim(dim, static_cast<int64_t>(from.size()) + 1));
  Movement movement = identityMovement(from);
  movement.result.insert(movement.result.begin() + at, 1);
  return movement;
}

Result<Movement> flattened(const Shape& from, int64_t first, int64_t last) {
  const auto rank = static_cast<int64_t>(from.size());
  CARINA_TRY(const int64_t begin, wrapDim(first, rank));
  CARINA_TRY(const int64_t end, wrapDim(last, rank));
  if (begin > end)
    return fail(Code::InvalidOperator, "flatten: start dimension {} comes after end dimension {}", begin,
                end);
  Movement movement = identityMovement(from);
  movement.result.assign(from.begin(), from.begin() + std::min(begin, rank));
  int64_t product = 1;
  for (int64_t i = begin; i <= end && i < rank; ++i) product *= from[static_cast<size_t>(i)];
  movement.result.push_back(product);
  if (end + 1 < rank) movement.result.insert(movement.result.end(), from.begin() + end + 1, from.end());
  return movement;
}

Result<Movement> unflattened(const Shape& from, int64_t dim, const Shape& sizes) {
  CARINA_TRY(const int64_t at, wrapDim(dim, static_cast<int64_t>(from.size())));
  if (from.empty()) return fail(Code::InvalidOperator, "a scalar has no dimension to unflatten");
  CARINA_TRY(const Movement inner, reshaped({from[static_cast<size_t>(at)]}, sizes));
  Shape to(from.begin(), from.begin() + at);
  to.insert(to.end(), inner.result.begin(), inner.result.end());
  to.insert(to.end(), from.begin() + at + 1, from.end());
  return reshaped(from, std::move(to));
}

Result<Movement> flipped(const Shape& from, const ir::Ints& dims) {
  Movement movement = identityMovement(from);
  for (int64_t raw : dims) {
    CARINA_TRY(const int64_t dim, wrapDim(raw, static_cast<int64_t>(from.size())));
    if (from.empty()) continue;
    const auto d = static_cast<size_t>(dim);
    if (from[d] > 0) movement.offset += (from[d] - 1) * movement.strides[d];
    movement.strides[d] = -movement.strides[d];
  }
  return movement;
}

/// Rotates by quarter turns in the plane of two dimensions, by transposition and reversal.
Result<Movement> rotated(const Shape& from, int64_t turns, const ir::Ints& dims) {
  if (dims.size() != 2) return fail(Code::InvalidOperator, "rot90 needs two dimensions, got {}", dims.size());
  CARINA_TRY(const int64_t a, wrapDim(dims[0], static_cast<int64_t>(from.size())));
  CARINA_TRY(const int64_t b, wrapDim(dims[1], static_cast<int64_t>(from.size())));
  if (a == b || from.size() < 2) return fail(Code::InvalidOperator, "rot90 needs two different dimensions");
  const int64_t k = (turns % 4 + 4) % 4;
  if (k == 0) return identityMovement(from);
  if (k == 2) return flipped(from, dims);
  CARINA_TRY(Movement movement, flipped(from, {k == 1 ? b : a}));
  std::swap(movement.shape[static_cast<size_t>(a)], movement.shape[static_cast<size_t>(b)]);
  std::swap(movement.strides[static_cast<size_t>(a)], movement.strides[static_cast<size_t>(b)]);
  movement.result = movement.shape;
  return movement;
}

Result<Movement> diagonalOf(const Shape& from, int64_t offset, int64_t dim1, int64_t dim2) {
  const auto rank = static_cast<int64_t>(from.size());
  CARINA_TRY(const int64_t a, wrapDim(dim1, rank));
  CARINA_TRY(const int64_t b, wrapDim(dim2, rank));
  if (a == b || rank < 2) return fail(Code::InvalidOperator, "a diagonal needs two different dimensions");
  Movement movement = identityMovement(from);
  const auto first = static_cast<size_t>(a), second = static_cast<size_t>(b);
  const int64_t rows = from[first] + std::min<int64_t>(offset, 0),
                columns = from[second] - std::max<int64_t>(offset, 0);
  const int64_t length = std::max<int64_t>(0, std::min(rows, columns));
  const int64_t step = movement.strides[first] + movement.strides[second];
  if (length > 0)
    movement.offset = offset >= 0 ? offset * movement.strides[second] : -offset * movement.strides[first];
  for (size_t d : {std::max(first, second), std::min(first, second)}) {
    movement.shape.erase(movement.shape.begin() + static_cast<std::ptrdiff_t>(d));
    movement.strides.erase(movement.strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
  movement.shape.push_back(length);
  movement.strides.push_back(step);
  movement.result = movement.shape;
  return movement;
}

Result<Movement> unfolded(const Shape& from, int64_t dim, int64_t size, int64_t step) {
  CARINA_TRY(const int64_t at, wrapDim(dim, static_cast<int64_t>(from.size())));
  const auto d = static_cast<size_t>(at);
  if (from.empty() || size < 0 || size > from[d] || step <= 0)
    return fail(Code::InvalidOperator, "windows of {} elements in steps of {} do not fit the dimension", size,
                step);
  Movement movement = identityMovement(from);
  movement.shape[d] = (from[d] - size) / step + 1;
  movement.shape.push_back(size);
  movement.strides.push_back(movement.strides[d]);
  movement.strides[d] *= step;
  movement.result = movement.shape;
  return movement;
}

/// View as `inner`, permute by `order`, view as `outer`: pixel and channel shuffles.
Result<Movement> shuffled(const Shape& from, const Shape& inner, const ir::Ints& order, Shape outer) {
  CARINA_TRY([[maybe_unused]] const Movement check, reshaped(from, inner));
  CARINA_TRY(Movement movement, permuted(inner, order));
  movement.result = std::move(outer);
  return movement;
}

Result<Movement> pixelShuffled(const Shape& from, int64_t r, bool inverse) {
  if (from.size() < 3 || r <= 0 || r > 1 << 15)
    return fail(Code::InvalidOperator, "pixel shuffle by {} is not possible for shape {}", r,
                shapeText(from));
  const size_t n = from.size();
  const int64_t c = from[n - 3], h = from[n - 2], w = from[n - 1],
                lead = carina::numElements({from.begin(), from.end() - 3});
  Shape outer(from.begin(), from.end() - 3);
  if (inverse) {
    if (h % r != 0 || w % r != 0)
      return fail(Code::InvalidOperator, "{} is not divisible by {}", shapeText(from), r);
    outer.insert(outer.end(), {c * r * r, h / r, w / r});
    return shuffled(from, {lead, c, h / r, r, w / r, r}, {0, 1, 3, 5, 2, 4}, std::move(outer));
  }
  if (c % (r * r) != 0) return fail(Code::InvalidOperator, "{} channels are not divisible by {}", c, r * r);
  outer.insert(outer.end(), {c / (r * r), h * r, w * r});
  return shuffled(from, {lead, c / (r * r), r, r, h, w}, {0, 1, 4, 2, 5, 3}, std::move(outer));
}

Result<Movement> channelShuffled(const Shape& from, int64_t groups) {
  if (from.size() < 3 || groups <= 0 || from[1] % groups != 0)
    return fail(Code::InvalidOperator, "{} channels cannot be divided into {} groups",
                from.size() < 2 ? 0 : from[1], groups);
  const int64_t rest = carina::numElements({from.begin() + 2, from.end()});
  return shuffled(from, {from[0], groups, from[1] / groups, rest}, {0, 2, 1, 3}, from);
}

Result<Movement> strided(const Shape& from, const Shape& size, const ir::Ints& strides, int64_t offset) {
  if (size.size() != strides.size() || !checkedNumElements(size))
    return fail(Code::InvalidOperator, "as_strided: sizes and strides do not match");
  int64_t low = offset, high = offset;
  for (size_t i = 0; i < size.size(); ++i) {
    const auto reach = checkedMul(std::max<int64_t>(size[i] - 1, 0), strides[i]);
    const auto sum = reach ? checkedAdd(*reach < 0 ? low : high, *reach) : std::nullopt;
    if (!sum) return fail(Code::TooLarge, "as_strided overflows");
    (*reach < 0 ? low : high) = *sum;
  }
  if (carina::numElements(size) > 0 && (low < 0 || high >= carina::numElements(from))) {
    return fail(Code::InvalidOperator, "as_strided reads outside the {} elements of its tensor",
                carina::numElements(from));
  }
  return Movement{0, size, strides, offset, size};
}

Result<std::vector<Movement>> grid(const ir::Node& node, bool swapFirstTwo) {
  Shape shape;
  for (const ir::Value* operand : node.operands()) {
    if (operand->rank() > 1)
      return fail(Code::InvalidOperator, "meshgrid takes vectors, got {}", shapeText(operand->shape()));
    shape.push_back(operand->numElements());
  }
  if (swapFirstTwo && shape.size() >= 2) std::swap(shape[0], shape[1]);
  if (!checkedNumElements(shape)) return fail(Code::TooLarge, "{} is too large", shapeText(shape));
  std::vector<Movement> moves;
  for (size_t i = 0; i < node.operands().size(); ++i) {
    Movement movement{i, shape, ir::Ints(shape.size(), 0), 0, shape};
    const size_t dim = swapFirstTwo && i < 2 && shape.size() >= 2 ? 1 - i : i;
    movement.strides[dim] = 1;
    moves.push_back(std::move(movement));
  }
  return moves;
}

Result<std::vector<Movement>> broadcastGroup(const ir::Node& node) {
  Shape shape;
  for (const ir::Value* operand : node.operands()) {
    auto joint = broadcastShapes(shape, operand->shape());
    if (!joint)
      return fail(Code::InvalidOperator, "shapes {} and {} do not broadcast", shapeText(shape),
                  shapeText(operand->shape()));
    shape = *joint;
  }
  std::vector<Movement> moves;
  for (size_t i = 0; i < node.operands().size(); ++i) {
    CARINA_TRY(Movement movement, expanded(node.operands()[i]->shape(), shape));
    movement.operand = i;
    moves.push_back(std::move(movement));
  }
  return moves;
}

Moves wrap(Result<Movement> movement) {
  if (!movement) return std::move(movement).error();
  return only(std::move(*movement));
}
Moves wrap(Result<std::vector<Movement>> list) {
  if (!list) return std::move(list).error();
  return std::optional(std::move(*list));
}

}  // namespace

Result<std::optional<std::vector<Movement>>> movements(const ir::Node& node) {
  if (!isOperator(&node)) return std::optional<std::vector<Movement>>();
  if (node.operands().empty() || !node.operands()[0]) return std::optional<std::vector<Movement>>();
  const Shape& from = node.operands()[0]->shape();
  const Arguments a(node);
  switch (opId(&node)) {
    case OpId::Contiguous:
    case OpId::Clone:
    case OpId::Alias:
    case OpId::LiftFreshCopy:
    case OpId::Dropout:
    case OpId::FeatureDropout:
    case OpId::AlphaDropout:
    case OpId::FeatureAlphaDropout:
    case OpId::DetachInplace:
      return only(identityMovement(from));
    case OpId::View:
    case OpId::Reshape:
      return wrap(reshaped(from, a.ints(a.has("shape") ? "shape" : "size")));
    case OpId::ViewAs:
    case OpId::ReshapeAs:
      return wrap(reshaped(from, node.operands()[1]->shape()));
    case OpId::FlattenUsingInts:
      return wrap(flattened(from, a.integer("start_dim"), a.integer("end_dim")));
    case OpId::UnflattenInt:
      return wrap(unflattened(from, a.integer("dim"), a.ints("sizes")));
    case OpId::Squeeze:
    case OpId::SqueezeInplace:
      return wrap(squeezed(from, std::nullopt));
    case OpId::SqueezeDim:
    case OpId::SqueezeDims:
    case OpId::SqueezeDimInplace:
    case OpId::SqueezeDimsInplace:
      return wrap(squeezed(from, a.ints("dim")));
    case OpId::Unsqueeze:
    case OpId::UnsqueezeInplace:
      return wrap(unsqueezed(from, a.integer("dim")));
    case OpId::Permute:
      return wrap(permuted(from, a.ints("dims")));
    case OpId::TransposeInt:
    case OpId::TransposeIntInplace:
      return wrap(swapped(from, a.integer("dim0"), a.integer("dim1")));
    case OpId::TransposeMatrix:
    case OpId::TInplace:
      if (from.size() > 2) return fail(Code::InvalidOperator, "t() takes matrices, got {}", shapeText(from));
      return wrap(reversed(from));
    case OpId::NumpyT:
      return wrap(reversed(from));
    case OpId::MT:
      if (from.size() < 2) return fail(Code::InvalidOperator, "mT takes matrices, got {}", shapeText(from));
      return wrap(swapped(from, -1, -2));
    case OpId::MovedimInt:
    case OpId::MovedimIntlist:
      return wrap(moved(from, a.ints("source"), a.ints("destination")));
    case OpId::Expand:
    case OpId::BroadcastTo:
      return wrap(expanded(from, a.ints("size")));
    case OpId::ExpandAs:
      return wrap(expanded(from, node.operands()[1]->shape()));
    case OpId::Repeat:
      return wrap(repeated(from, a.ints("repeats"), false));
    case OpId::Tile:
      return wrap(repeated(from, a.ints("dims"), true));
    case OpId::RepeatInterleaveSelfInt: {
      const auto dim = a.given("dim") ? std::optional(a.integer("dim")) : std::nullopt;
      return wrap(interleaved(from, a.integer("repeats"), dim));
    }
    case OpId::Flip:
      return wrap(flipped(from, a.ints("dims")));
    case OpId::Fliplr:
      return wrap(flipped(from, {1}));
    case OpId::Flipud:
      return wrap(flipped(from, {0}));
    case OpId::Diagonal:
      return wrap(diagonalOf(from, a.integer("offset"), a.integer("dim1"), a.integer("dim2")));
    case OpId::Diag:
      if (from.size() != 2)
        return fail(Code::InvalidOperator,
                    "diag takes matrices; use diag_embed for a vector, or build the matrix with torch.where");
      return wrap(diagonalOf(from, a.integer("diagonal"), 0, 1));
    case OpId::Rot90:
      return wrap(rotated(from, a.integer("k", 1), a.ints("dims")));
    case OpId::Unfold:
      return wrap(unfolded(from, a.integer("dimension"), a.integer("size"), a.integer("step")));
    case OpId::PixelShuffle:
      return wrap(pixelShuffled(from, a.integer("upscale_factor"), false));
    case OpId::PixelUnshuffle:
      return wrap(pixelShuffled(from, a.integer("downscale_factor"), true));
    case OpId::ChannelShuffle:
      return wrap(channelShuffled(from, a.integer("groups")));
    case OpId::AsStrided:
      return wrap(strided(from, a.ints("size"), a.ints("stride"), a.integer("storage_offset")));
    case OpId::Meshgrid:
      return wrap(grid(node, false));
    case OpId::MeshgridIndexing:
      return wrap(grid(node, a.text("indexing") == "xy"));
    case OpId::BroadcastTensors:
      return wrap(broadcastGroup(node));
    case OpId::SliceTensor:
    case OpId::SelectInt:
    case OpId::Narrow:
      return wrap(cut(node));
    case OpId::SplitTensor:
    case OpId::SplitSizes:
    case OpId::SplitWithSizes:
    case OpId::Chunk:
    case OpId::UnbindInt:
    case OpId::TensorSplitSections:
    case OpId::TensorSplitIndices:
      return wrap(pieces(node));
    default:
      return std::optional<std::vector<Movement>>();
  }
}

infer::Types infer::movement(const ir::Node& node) {
  CARINA_RETURN_IF_ERROR(checkNotTraining(node));
  CARINA_TRY(const auto moves, movements(node));
  if (!moves) return fail(Code::InvalidOperator, "{}: expected at least one tensor", node.opName());
  std::vector<ir::Type> types;
  for (const Movement& move : *moves) types.push_back({node.operands()[move.operand]->dtype(), move.result});
  return types;
}

}  // namespace carina::aten
