// SPDX-License-Identifier: Apache-2.0
// Movements that cut pieces out of one dimension.
#include <algorithm>

#include "aten/arguments.hpp"
#include "aten/movement_rules.hpp"
#include "aten/ops.hpp"

namespace carina::aten {
namespace {

Movement piece(const Shape& from, size_t dim, int64_t start, int64_t length, int64_t step = 1) {
  Movement movement = identityMovement(from);
  if (length > 0) movement.offset = start * movement.strides[dim];
  movement.shape[dim] = length;
  movement.strides[dim] *= step;
  movement.result = movement.shape;
  return movement;
}

/// Lengths of the pieces of a split or chunk: `length` each; the last one may be shorter.
Result<ir::Ints> equalPieces(int64_t size, int64_t length) {
  if (length < 0 || (length == 0 && size != 0))
    return fail(Code::InvalidOperator, "a tensor cannot be split into pieces of {} elements", length);
  if (size == 0) return ir::Ints{0};
  ir::Ints lengths;
  for (int64_t left = size; left > 0; left -= length) lengths.push_back(std::min(left, length));
  return lengths;
}

}  // namespace

SliceRange sliceRange(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  const auto clampTo = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  SliceRange range{clampTo(start.value_or(0)), step, 0};
  const int64_t stop = clampTo(end.value_or(size));
  if (stop > range.start) range.length = (stop - range.start - 1) / step + 1;
  return range;
}

Result<Movement> cut(const ir::Node& node) {
  const Shape& from = node.operand(0)->shape();
  const Arguments a(node);
  CARINA_TRY(const int64_t wrapped, wrapDim(a.integer("dim"), static_cast<int64_t>(from.size())));
  if (from.empty()) return fail(Code::InvalidOperator, "a scalar cannot be sliced");
  const auto dim = static_cast<size_t>(wrapped);
  const int64_t size = from[dim];
  if (a.has("index")) {
    const int64_t raw = a.integer("index"), index = raw < 0 ? raw + size : raw;
    if (index < 0 || index >= size)
      return fail(Code::InvalidOperator, "index {} is out of range for dimension {} of {}", raw, dim,
                  shapeText(from));
    Movement movement = piece(from, dim, index, 1);
    movement.result.erase(movement.result.begin() + wrapped);
    return movement;
  }
  if (a.has("length")) {
    const int64_t raw = a.integer("start"), start = raw < 0 ? raw + size : raw, length = a.integer("length");
    if (start < 0 || length < 0 || length > size || start > size - length) {
      return fail(Code::InvalidOperator, "{} elements from {} exceed dimension {} of {}", length, raw, dim,
                  shapeText(from));
    }
    return piece(from, dim, start, length);
  }
  const int64_t step = a.integer("step", 1);
  if (step <= 0) return fail(Code::InvalidOperator, "slices need a positive step, got {}", step);
  const auto bound = [&](std::string_view name) {
    return a.given(name) ? std::optional(a.integer(name)) : std::nullopt;
  };
  const SliceRange range = sliceRange(size, bound("start"), bound("end"), step);
  return piece(from, dim, range.start, range.length, range.length > 1 ? step : 1);
}

Result<std::vector<Movement>> pieces(const ir::Node& node) {
  const Shape& from = node.operand(0)->shape();
  const Arguments a(node);
  CARINA_TRY(const int64_t wrapped, wrapDim(a.integer("dim"), static_cast<int64_t>(from.size())));
  if (from.empty()) return fail(Code::InvalidOperator, "a scalar cannot be split");
  const auto dim = static_cast<size_t>(wrapped);
  const int64_t size = from[dim];
  ir::Ints lengths;
  switch (opId(&node)) {
    case OpId::SplitTensor: {
      CARINA_TRY(lengths, equalPieces(size, a.integer("split_size")));
      break;
    }
    case OpId::Chunk: {
      const int64_t chunks = a.integer("chunks");
      if (chunks <= 0) return fail(Code::InvalidOperator, "a tensor cannot be split into {} chunks", chunks);
      CARINA_TRY(lengths, equalPieces(size, ceilDiv(size, chunks)));
      break;
    }
    case OpId::UnbindInt:
      lengths = ir::Ints(static_cast<size_t>(size), 1);
      break;
    case OpId::TensorSplitSections: {
      const int64_t sections = a.integer("sections");
      if (sections <= 0 || sections > 1 << 20)
        return fail(Code::InvalidOperator, "a tensor cannot be split into {} sections", sections);
      for (int64_t i = 0; i < sections; ++i)
        lengths.push_back(size / sections + (i < size % sections ? 1 : 0));
      break;
    }
    case OpId::TensorSplitIndices: {
      std::vector<Movement> moves;
      std::optional<int64_t> start = 0;
      ir::Ints indices = a.ints("indices");
      for (size_t i = 0; i <= indices.size(); ++i) {
        const auto end = i < indices.size() ? std::optional(indices[i]) : std::nullopt;
        const SliceRange range = sliceRange(size, start, end, 1);
        moves.push_back(piece(from, dim, range.start, range.length));
        start = end;
      }
      return moves;
    }
    default:
      lengths = a.ints(a.has("split_sizes") ? "split_sizes" : "split_size");
      break;
  }
  std::vector<Movement> moves;
  int64_t start = 0;
  for (int64_t length : lengths) {
    if (length < 0 || length > size - start)
      return fail(Code::InvalidOperator, "the pieces do not add up to {}", size);
    moves.push_back(piece(from, dim, start, length));
    if (opId(&node) == OpId::UnbindInt) moves.back().result.erase(moves.back().result.begin() + wrapped);
    start += length;
  }
  if (start != size) return fail(Code::InvalidOperator, "the pieces do not add up to {}", size);
  return moves;
}

}  // namespace carina::aten
