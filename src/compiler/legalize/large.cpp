// SPDX-License-Identifier: Apache-2.0
// Exact forms of what exceeds the hardware's windows and feature maps: convolutions whose kernel does not fit
// the window become convolutions with more channels and fewer kernel positions, and an axis beyond 65536 is
// processed in parts. Sums stay in one accumulator, so 8 and 16-bit networks remain bit-exact.
#include <algorithm>
#include <array>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::Piece;
using npu_ir::Window;

namespace {

/// Number of neighbouring rows and columns of a kernel that become channels.
struct Fold {
  std::array<int64_t, 2> factor{1, 1};
  int64_t copies() const { return factor[0] * factor[1]; }
};

/// The fewest neighbouring rows and columns to turn into channels so that the remaining kernel fits.
Fold smallestFold(const Window& w) {
  Fold best{{w.kernel[0], w.kernel[1]}};
  for (int64_t y = 1; y <= w.kernel[0]; ++y) {
    const int64_t rows = ceilDiv(w.kernel[0], y);
    if (rows > kMaxKernelHeight) continue;
    const int64_t x = ceilDiv(w.kernel[1], std::min(kMaxKernelArea / rows, w.kernel[1]));
    if (Fold fold{{y, x}}; fold.copies() < best.copies()) best = fold;
    if (x == 1) break;
  }
  return best;
}

/// Channels [first, first + count) of weights OHWI or, depthwise, HWC.
Tensor channelsOf(const Tensor& weight, bool depthwise, int64_t first, int64_t count) {
  const Shape& s = weight.shape();
  Shape shape = s;
  const size_t axis = depthwise ? 2 : 0;
  shape[axis] = count;
  Tensor part = Tensor::zeros(weight.dtype(), shape);
  const int64_t inner = depthwise ? 1 : s[1] * s[2] * s[3], outer = depthwise ? s[0] * s[1] : 1;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count * inner; ++i)
      part.setIntegerAt(o * count * inner + i, weight.integerAt((o * s[axis] + first) * inner + i));
  }
  return part;
}

Tensor filledLike(DType type, const Shape& shape, int64_t value) {
  Tensor tensor = Tensor::zeros(type, shape);
  for (int64_t i = 0; value != 0 && i < tensor.numElements(); ++i) tensor.setIntegerAt(i, value);
  return tensor;
}

}  // namespace

bool Legalizer::fitsWindow(const ir::Ints& kernel, const ir::Ints& dilation) {
  const int64_t height = (kernel[0] - 1) * dilation[0] + 1, width = (kernel[1] - 1) * dilation[1] + 1;
  return height <= kMaxKernelHeight && height * width <= kMaxKernelArea;
}

Result<ir::Value*> Legalizer::folded(Convolution conv, std::vector<ir::Node*>& operations) {
  Window& w = conv.window;
  const Shape size = conv.ifm->shape();
  const int64_t depth = size[2], channels = conv.bias.numElements();
  const Fold fold = smallestFold(w);
  const int64_t copies = fold.copies();
  if (copies * depth > kMaxAxis)
    return fail(Code::HardwareLimit, "a kernel of {}x{} over {} channels exceeds the accumulators",
                w.kernel[0], w.kernel[1], depth)
        .withRemedy("use a smaller kernel or fewer channels");
  // Position p of the folded map holds positions p, p + dilation, ... of the input as channels. Positions
  // before the input are included as far as one of those is inside.
  Shape map{0, 0, copies * depth};
  Window folded = w;
  ir::Ints lead(2);
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t f = fold.factor[axis], outputs = outputPositions(w, axis, size[axis]);
    folded.kernel[axis] = ceilDiv(w.kernel[axis], f);
    folded.dilation[axis] = f * w.dilation[axis];
    lead[axis] = std::min(w.pad[axis], (f - 1) * w.dilation[axis]);
    const int64_t last =
        (outputs - 1) * w.stride[axis] - w.pad[axis] + (folded.kernel[axis] - 1) * folded.dilation[axis];
    map[axis] = std::min(last, size[axis] - 1) + lead[axis] + 1;
    folded.pad[axis] = w.pad[axis] - lead[axis];
    folded.pad[axis + 2] = std::max<int64_t>(last - (size[axis] - 1), 0);
  }
  const Shape strides = rowMajorStrides(map), from = rowMajorStrides(size);
  std::vector<Piece> pieces;
  const auto fill = [&](int64_t y, int64_t x, int64_t rows, int64_t columns, int64_t channel) {
    if (rows <= 0 || columns <= 0) return;
    pieces.push_back({filled(conv.ifm->dtype(), {rows, columns, depth}, w.ifmZeroPoint),
                      y * strides[0] + x * strides[1] + channel, strides});
  };
  for (int64_t i = 0; i < copies; ++i) {
    // Rows and columns of the map whose position in this copy is inside the input.
    const std::array<int64_t, 2> shift{(i / fold.factor[1]) * w.dilation[0] - lead[0],
                                       (i % fold.factor[1]) * w.dilation[1] - lead[1]};
    std::array<int64_t, 2> begin{}, end{};
    for (size_t axis = 0; axis < 2; ++axis) {
      begin[axis] = std::clamp<int64_t>(-shift[axis], 0, map[axis]);
      end[axis] = std::clamp<int64_t>(size[axis] - shift[axis], begin[axis], map[axis]);
    }
    const int64_t rows = end[0] - begin[0], columns = end[1] - begin[1];
    if (rows > 0 && columns > 0) {
      for (Piece& piece :
           emitCopies(builder_, {conv.ifm,
                                 {rows, columns, depth},
                                 (begin[0] + shift[0]) * from[0] + (begin[1] + shift[1]) * from[1],
                                 from,
                                 begin[0] * strides[0] + begin[1] * strides[1] + i * depth,
                                 strides}))
        pieces.push_back(std::move(piece));
    }
    fill(0, 0, begin[0], map[1], i * depth);
    fill(end[0], 0, map[0] - end[0], map[1], i * depth);
    fill(begin[0], 0, rows, begin[1], i * depth);
    fill(begin[0], end[1], rows, map[1] - end[1], i * depth);
  }
  const ir::Ints kernel = w.kernel;
  Tensor weight = filledLike(conv.weight.dtype(), {channels, folded.kernel[0], folded.kernel[1], map[2]},
                             conv.weightZeroPoint);
  for (int64_t o = 0; o < channels; ++o) {
    for (int64_t y = 0; y < kernel[0]; ++y) {
      for (int64_t x = 0; x < kernel[1]; ++x) {
        const int64_t copy = y % fold.factor[0] * fold.factor[1] + x % fold.factor[1];
        const int64_t at =
            ((o * folded.kernel[0] + y / fold.factor[0]) * folded.kernel[1] + x / fold.factor[1]) * map[2] +
            copy * depth;
        const int64_t tap = ((o * kernel[0] + y) * kernel[1] + x) * depth;
        for (int64_t c = 0; c < depth; ++c) weight.setIntegerAt(at + c, conv.weight.integerAt(tap + c));
      }
    }
  }
  conv.ifm = npu_ir::createJoin(builder_, pieces, {conv.ifm->dtype(), map});
  conv.weight = std::move(weight);
  conv.window = folded;
  return convolve(std::move(conv), operations);
}

Result<ir::Value*> Legalizer::asLine(Convolution conv, std::vector<ir::Node*>& operations) {
  Window& w = conv.window;
  for (ir::Ints* pair : {&w.kernel, &w.stride, &w.dilation}) std::swap((*pair)[0], (*pair)[1]);
  std::swap(w.pad[0], w.pad[1]);
  std::swap(w.pad[2], w.pad[3]);
  const Shape size = conv.ifm->shape(), taps = conv.weight.shape();
  conv.ifm = npu_ir::createReshape(builder_, conv.ifm, {1, size[0], size[2]});
  conv.weight =
      conv.weight.reshaped(conv.depthwise ? Shape{1, taps[0], taps[2]} : Shape{taps[0], 1, taps[1], taps[3]});
  CARINA_TRY(ir::Value * line, convolve(std::move(conv), operations));
  return npu_ir::createReshape(builder_, line, {line->dim(1), 1, line->dim(2)});
}

Result<ir::Value*> Legalizer::channelByChannel(const Convolution& conv, int64_t most, bool diagonal,
                                               std::vector<ir::Node*>& operations) {
  const int64_t channels = conv.bias.numElements();
  const Shape out{outputPositions(conv.window, 0, conv.ifm->dim(0)),
                  outputPositions(conv.window, 1, conv.ifm->dim(1)), channels};
  const Shape strides = rowMajorStrides(out);
  std::vector<Piece> pieces;
  for (int64_t first = 0; first < channels; first += most) {
    const int64_t count = std::min(most, channels - first);
    Convolution part = conv;
    part.weight = channelsOf(conv.weight, conv.depthwise, first, count);
    part.bias = channelsOf(conv.bias.reshaped({channels, 1, 1, 1}), false, first, count).reshaped({count});
    if (conv.depthwise) {
      Shape start{0, 0, first}, size = conv.ifm->shape();
      size[2] = count;
      part.ifm = npu_ir::createSlice(builder_, conv.ifm, start, size);
    }
    if (diagonal) {
      // Output channel c only reads input channel c.
      const int64_t taps = part.weight.dim(0) * part.weight.dim(1);
      Tensor weight = filledLike(part.weight.dtype(), {count, part.weight.dim(0), part.weight.dim(1), count},
                                 conv.weightZeroPoint);
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t t = 0; t < taps; ++t)
          weight.setIntegerAt((c * taps + t) * count + c, part.weight.integerAt(t * count + c));
      }
      part.weight = std::move(weight);
      part.depthwise = false;
    }
    const size_t known = operations.size();
    CARINA_TRY(ir::Value * result, convolve(std::move(part), operations));
    for (size_t i = known; i < operations.size(); ++i) firstChannel_[operations[i]] += first;
    pieces.push_back({result, first, strides});
  }
  return npu_ir::createJoin(builder_, pieces, {conv.type, out});
}

Result<ir::Value*> Legalizer::deepAsColumns(Convolution conv, std::vector<ir::Node*>& operations) {
  // A 1x1 kernel over too many channels: the channels of a position become a row of columns.
  const int64_t depth = conv.ifm->dim(2), columns = ceilDiv(depth, kMaxAxis), part = ceilDiv(depth, columns);
  const int64_t channels = conv.bias.numElements(), rows = conv.ifm->dim(0), width = conv.ifm->dim(1);
  Window& w = conv.window;
  if (const int64_t missing = columns * part - depth; missing > 0) {
    CARINA_TRY(conv.ifm, padded(conv.ifm, {0, 0, 0, 0, 0, missing}, w.ifmZeroPoint));
    Tensor weight = filledLike(conv.weight.dtype(), {channels, 1, columns, part}, conv.weightZeroPoint);
    for (int64_t o = 0; o < channels; ++o) {
      for (int64_t i = 0; i < depth; ++i)
        weight.setIntegerAt(o * columns * part + i, conv.weight.integerAt(o * depth + i));
    }
    conv.weight = std::move(weight);
  }
  conv.ifm = npu_ir::createReshape(builder_, conv.ifm, {rows * width, columns, part});
  conv.weight = conv.weight.reshaped({channels, 1, columns, part});
  w.kernel = {1, columns};
  CARINA_TRY(ir::Value * result, convolve(std::move(conv), operations));
  return npu_ir::createReshape(builder_, result, {rows, width, channels});
}

Result<ir::Value*> Legalizer::tiled(Convolution conv, size_t axis, std::vector<ir::Node*>& operations) {
  const Window& w = conv.window;
  const Shape size = conv.ifm->shape();
  const int64_t reach = (w.kernel[axis] - 1) * w.dilation[axis] + 1;
  if (reach > kMaxAxis)
    return fail(Code::HardwareLimit, "the kernel's size {} exceeds {}", reach, kMaxAxis)
        .withRemedy("use a smaller kernel");
  const Shape out{outputPositions(w, 0, size[0]), outputPositions(w, 1, size[1]), conv.bias.numElements()};
  const int64_t most = std::min(kMaxAxis, (kMaxAxis - reach) / w.stride[axis] + 1);
  const int64_t count = ceilDiv(out[axis], ceilDiv(out[axis], most));
  const Shape strides = rowMajorStrides(out);
  std::vector<Piece> pieces;
  for (int64_t first = 0; first < out[axis]; first += count) {
    const int64_t outputs = std::min(count, out[axis] - first);
    const int64_t begin = first * w.stride[axis] - w.pad[axis],
                  end = begin + (outputs - 1) * w.stride[axis] + reach;
    Shape start{0, 0, 0}, part = size;
    start[axis] = std::max<int64_t>(begin, 0);
    part[axis] = std::min(end, size[axis]) - start[axis];
    if (part[axis] < 1) {
      // Positions that only see padding need some of it in memory.
      CARINA_TRY(conv.ifm, padded(conv.ifm, {w.pad[0], w.pad[2], w.pad[1], w.pad[3], 0, 0}, w.ifmZeroPoint));
      conv.window.pad = {0, 0, 0, 0};
      return tiled(std::move(conv), axis, operations);
    }
    Convolution tile = conv;
    tile.ifm = npu_ir::createSlice(builder_, conv.ifm, start, part);
    tile.window.pad[axis] = std::max<int64_t>(-begin, 0);
    tile.window.pad[axis + 2] = std::max<int64_t>(end - size[axis], 0);
    CARINA_TRY(ir::Value * result, convolve(std::move(tile), operations));
    pieces.push_back({result, first * strides[axis], strides});
  }
  return npu_ir::createJoin(builder_, pieces, {conv.type, out});
}

Result<ir::Value*> Legalizer::perMap(ir::Value* value,
                                     const std::function<Result<ir::Value*>(ir::Value*)>& operation) {
  if (auto whole = asMap(value)) {
    CARINA_TRY(ir::Value * result, operation(*whole));
    return npu_ir::createReshape(builder_, result, value->shape());
  }
  // Rows of 65536 elements, and the rest.
  const int64_t count = value->numElements();
  std::vector<Piece> pieces;
  for (int64_t first = 0; first < count;) {
    const int64_t rows = std::max<int64_t>((count - first) / kMaxAxis, 1),
                  row = std::min(count - first, kMaxAxis);
    ir::Value* map =
        npu_ir::createView(builder_, value, value->dtype(), {1, rows, row}, first, {rows * row, row, 1});
    CARINA_TRY(ir::Value * result, operation(map));
    pieces.push_back({npu_ir::createReshape(builder_, result, {rows * row}), first, {1}});
    first += rows * row;
  }
  ir::Value* joined = npu_ir::createJoin(builder_, pieces, {pieces[0].value->dtype(), {count}});
  return npu_ir::createReshape(builder_, joined, value->shape());
}

Result<ir::Value*> Legalizer::reducedInParts(
    ir::Value* map, const std::function<Result<ir::Value*>(ir::Value*)>& reduce,
    const std::function<Result<ir::Value*>(ir::Value*, ir::Value*)>& combine) {
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t size = map->dim(static_cast<int64_t>(axis));
    if (size <= kMaxAxis) continue;
    const int64_t most = ceilDiv(size, ceilDiv(size, kMaxAxis));
    Shape out{map->dim(0), 1, map->dim(2)};
    const Shape strides = rowMajorStrides(out);
    std::vector<Piece> pieces;
    ir::Value* whole = nullptr;
    for (int64_t first = 0; first < size; first += most) {
      Shape start{0, 0, 0}, part = map->shape();
      start[axis] = first;
      part[axis] = std::min(most, size - first);
      CARINA_TRY(ir::Value * result,
                 reducedInParts(npu_ir::createSlice(builder_, map, start, part), reduce, combine));
      if (axis != 1) {
        pieces.push_back({result, first * strides[axis], strides});
      } else if (whole) {
        CARINA_TRY(whole, combine(whole, result));
      } else {
        whole = result;
      }
    }
    return axis == 1 ? whole : npu_ir::createJoin(builder_, pieces, {pieces[0].value->dtype(), out});
  }
  CARINA_TRY(ir::Value * result, reduce(map));
  return npu_ir::createReshape(builder_, result, {map->dim(0), 1, map->dim(2)});
}

}  // namespace carina::compiler
