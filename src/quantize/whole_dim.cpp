// SPDX-License-Identifier: Apache-2.0
#include "quantize/whole_dim.hpp"

namespace carina::quantize {
namespace {

/// The stride of dimension `dim` of a dense tensor, in elements.
int64_t strideOf(const Shape& shape, int64_t dim) {
  int64_t stride = 1;
  for (size_t d = static_cast<size_t>(dim) + 1; d < shape.size(); ++d) stride *= shape[d];
  return stride;
}

/// The dimension of `other`, a shape with as many elements, that is the same as dimension `dim`.
std::optional<int64_t> sameDim(const Shape& shape, int64_t dim, const Shape& other) {
  for (int64_t d = 0; d < static_cast<int64_t>(other.size()); ++d) {
    if (other[static_cast<size_t>(d)] == shape[static_cast<size_t>(dim)] &&
        strideOf(other, d) == strideOf(shape, dim))
      return d;
  }
  return std::nullopt;
}

/// Whether every element's index along the operand's dimension (of `size` elements, `stride` apart) equals
/// that along the movement's dimension `dim`: the other dimensions step over all of it, or stay within one
/// element of it.
bool keepsIndex(const aten::Movement& move, size_t dim, int64_t size, int64_t stride) {
  int64_t within = move.offset % stride;
  for (size_t d = 0; d < move.shape.size(); ++d) {
    if (d == dim || move.shape[d] == 1) continue;
    if (move.strides[d] < 0) return false;
    if (move.strides[d] % (stride * size) != 0) within += (move.shape[d] - 1) * move.strides[d];
  }
  return within < stride && move.offset / stride % size == 0;
}

}  // namespace

std::optional<WholeDim> wholeDimBefore(const ir::Node& node, int64_t dim) {
  if (node.results().size() != 1 || node.result()->numElements() == 0) return std::nullopt;
  const auto moves = aten::movements(node);
  if (!moves.ok() || !*moves || (*moves)->size() != 1) return std::nullopt;
  const aten::Movement& move = (**moves)[0];
  const Shape& operand = node.operands()[move.operand]->shape();
  const int64_t size = node.result()->dim(dim);
  const bool reshapes = move.isReshape(operand);
  const auto moved = reshapes ? dim : sameDim(move.result, dim, move.shape);
  if (!moved) return std::nullopt;
  const int64_t stride = reshapes ? strideOf(move.result, dim) : move.strides[static_cast<size_t>(*moved)];
  for (int64_t d = 0; d < static_cast<int64_t>(operand.size()); ++d) {
    if (operand[static_cast<size_t>(d)] != size || strideOf(operand, d) != stride) continue;
    if (reshapes || keepsIndex(move, static_cast<size_t>(*moved), size, stride))
      return WholeDim{move.operand, d};
  }
  return std::nullopt;
}

}  // namespace carina::quantize
