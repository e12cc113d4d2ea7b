// SPDX-License-Identifier: Apache-2.0
// Windows of a tensor side by side, diagonals, strided reads and circular padding, assembled from slices.
#include <algorithm>
#include <cmath>

#include "aten/geometry.hpp"
#include "aten/movement.hpp"
#include "aten/ops.hpp"
#include "decompose/dims.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

// Operators that need more slices than this are left to other forms, or to the CPU.
constexpr int64_t kMaxSlices = 256;

/// Elements start, start + step, ... of dimension `dim`, `count` of them.
ir::Value* slice(ir::Builder& b, ir::Value* x, int64_t dim, int64_t start, int64_t count, int64_t step = 1) {
  if (start == 0 && step == 1 && count == x->dim(dim)) return x;
  return aten::SliceTensor::create(b, x, dim, start, start + (count - 1) * step + 1, step);
}

/// Windows of `size` elements, `step` apart, in a new last dimension: one slice per window or one per element
/// of the windows, whichever is fewer.
ir::Value* rewriteUnfold(ir::Builder& b, aten::Unfold op) {
  if (op.self()->rank() == 0) return nullptr;
  const int64_t dim = wrapped(op.dimension(), op.self()->rank());
  const int64_t windows = op->result()->dim(dim), size = op.size(), step = op.step();
  if (std::min(windows, size) > kMaxSlices || windows == 0 || size == 0) return nullptr;
  std::vector<ir::Value*> pieces;
  if (size <= windows) {
    for (int64_t i = 0; i < size; ++i) pieces.push_back(slice(b, op.self(), dim, i, windows, step));
    return aten::Stack::create(b, pieces, op.self()->rank());
  }
  for (int64_t w = 0; w < windows; ++w) pieces.push_back(slice(b, op.self(), dim, w * step, size));
  ir::Value* stacked = aten::Stack::create(b, pieces, dim);
  return aten::MovedimInt::create(b, stacked, dim + 1, int64_t{-1});
}

/// [N, C, H, W] -> [N, C * kh * kw, positions]: one strided slice of the padded image per element of the
/// window.
Result<ir::Value*> rewriteIm2col(ir::Builder& b, aten::Im2col op) {
  CARINA_TRY(const aten::WindowGeometry g, aten::windowGeometry(*op.node()));
  if (g.kernel[0] * g.kernel[1] > kMaxSlices || g.positions[0] * g.positions[1] == 0) return nullptr;
  ir::Value* image = op.self();
  if (image->rank() == 3) image = aten::Unsqueeze::create(b, image, int64_t{0});
  if (g.padding[0] != 0 || g.padding[1] != 0) {
    image = aten::ConstantPadNd::create(
        b, image, ir::Ints{g.padding[1], g.padding[1], g.padding[0], g.padding[0]}, 0.0);
  }
  std::vector<ir::Value*> pieces;
  for (int64_t y = 0; y < g.kernel[0]; ++y) {
    ir::Value* rows = slice(b, image, 2, y * g.dilation[0], g.positions[0], g.stride[0]);
    for (int64_t x = 0; x < g.kernel[1]; ++x)
      pieces.push_back(slice(b, rows, 3, x * g.dilation[1], g.positions[1], g.stride[1]));
  }
  ir::Value* stacked = aten::Stack::create(b, pieces, int64_t{2});
  return aten::View::create(b, stacked, op->result()->shape());
}

/// Columns summed where their windows overlap: a transposed convolution per channel, whose kernel has its one
/// at a different position for every row of the columns.
Result<ir::Value*> rewriteCol2im(ir::Builder& b, aten::Col2im op) {
  if (isQuantizedAsUnit(op) || op.self()->dtype() != DType::Float32) return nullptr;
  CARINA_TRY(const aten::WindowGeometry g, aten::windowGeometry(*op.node()));
  const int64_t area = g.kernel[0] * g.kernel[1];
  const bool batched = op.self()->rank() == 3;
  const int64_t rows = op.self()->dim(batched ? 1 : 0), channels = rows / area;
  ir::Ints extra;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reached =
        (g.positions[i] - 1) * g.stride[i] - 2 * g.padding[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
    extra.push_back(op.outputSize()[i] - reached);
    if (extra[i] < 0 || extra[i] >= std::max(g.stride[i], g.dilation[i])) return nullptr;
  }
  Tensor ones = Tensor::zeros(DType::Float32, {rows, 1, g.kernel[0], g.kernel[1]});
  const auto values = ones.mutableAs<float>();
  for (int64_t r = 0; r < rows; ++r) values[static_cast<size_t>(r * area + r % area)] = 1.0f;
  ir::Value* columns = aten::View::create(
      b, op.self(), ir::Ints{batched ? op.self()->dim(0) : 1, rows, g.positions[0], g.positions[1]});
  ir::Value* image = aten::ConvTranspose2dInput::create(b, columns, b.constant(std::move(ones)), nullptr,
                                                        g.stride, g.padding, extra, channels, g.dilation);
  return aten::View::create(b, image, op->result()->shape());
}

/// A diagonal is every (columns + 1)th element of the flattened matrix.
ir::Value* rewriteDiagonal(ir::Builder& b, aten::Diagonal op) {
  const int64_t rank = op.self()->rank();
  const int64_t rowDim = wrapped(op.dim1(), rank), columnDim = wrapped(op.dim2(), rank);
  const int64_t columns = op.self()->dim(columnDim), count = op->result()->shape().back();
  if (count == 0) return nullptr;
  ir::Ints order, shape;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == rowDim || d == columnDim) continue;
    order.push_back(d);
    shape.push_back(op.self()->dim(d));
  }
  order.insert(order.end(), {rowDim, columnDim});
  shape.push_back(op.self()->dim(rowDim) * columns);
  ir::Value* flat = aten::Reshape::create(b, aten::Permute::create(b, op.self(), order), shape);
  const int64_t start = op.offset() >= 0 ? op.offset() : -op.offset() * columns;
  return slice(b, flat, rank - 2, start, count, columns + 1);
}

/// Strided reads: the elements are selected individually from the flattened tensor.
Result<ir::Value*> rewriteAsStrided(ir::Builder& b, aten::AsStrided op) {
  CARINA_TRY(const auto moves, aten::movements(*op.node()));
  if (!moves) return nullptr;
  const aten::Movement& move = (*moves)[0];
  ir::Value* result = nullptr;
  if (move.isReshape(op.self()->shape())) {
    result = aten::View::create(b, op.self(), op->result()->shape());
  } else {
    const Tensor index = Tensor::zeros(DType::Int64, {op->result()->numElements()});
    Tensor picked = index;
    Shape at(move.shape.size(), 0);
    for (int64_t i = 0; i < picked.numElements(); ++i) {
      int64_t element = move.offset;
      for (size_t d = 0; d < at.size(); ++d) element += at[d] * move.strides[d];
      picked.setIntegerAt(i, element);
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < move.shape[d]) break;
        at[d] = 0;
      }
    }
    ir::Value* flat = aten::Reshape::create(b, op.self(), ir::Ints{op.self()->numElements()});
    ir::Value* elements = aten::IndexSelect::create(b, flat, b.constant(std::move(picked)), int64_t{0});
    result = aten::View::create(b, elements, op->result()->shape());
  }
  return result;
}

/// Padding on one side is copied from the other side.
ir::Value* rewriteCircularPad(ir::Builder& b, aten::Pad op) {
  if (op.mode() != "circular") return nullptr;
  const ir::Ints& pad = op.pad();
  if (std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p < 0; })) return nullptr;
  ir::Value* result = op.self();
  for (size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const int64_t dim = result->rank() - 1 - static_cast<int64_t>(i), extent = result->dim(dim);
    std::vector<ir::Value*> pieces;
    if (pad[2 * i] > 0) pieces.push_back(slice(b, result, dim, extent - pad[2 * i], pad[2 * i]));
    pieces.push_back(result);
    if (pad[2 * i + 1] > 0) pieces.push_back(slice(b, result, dim, 0, pad[2 * i + 1]));
    if (pieces.size() > 1) result = aten::Cat::create(b, pieces, dim);
  }
  return result;
}

}  // namespace

void addWindowRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteUnfold, rewriteIm2col, rewriteCol2im, rewriteDiagonal, rewriteAsStrided,
              rewriteCircularPad);
}

}  // namespace carina::decompose
