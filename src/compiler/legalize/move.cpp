// SPDX-License-Identifier: Apache-2.0
// Data movement: RESHAPE and SLICE are addressing, CONCAT writes its parts in place, TRANSPOSE, PAD, TILE and
// REVERSE are copies.
#include <algorithm>
#include <numeric>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::Piece;

namespace {

/// Convolutions interleave or deinterleave up to this many planes, in runs of kRun elements.
constexpr int64_t kMaxPlanes = 16, kRun = 8;
/// Up to this many copies may replace one POOL.
constexpr int64_t kFewCopies = 8;

/// Up to this size, every position is reversed, or every repetition written, by a copy of its own.
constexpr int64_t kMaxRun = 64;

}  // namespace

ir::Value* Legalizer::rearranged(ir::Value* value, const Shape& shape, const Shape& box, int64_t sourceOffset,
                                 const ir::Ints& sourceStrides, int64_t targetOffset,
                                 const ir::Ints& targetStrides) {
  const auto pieces =
      emitCopies(builder_, {value, box, sourceOffset, sourceStrides, targetOffset, targetStrides});
  return npu_ir::createJoin(builder_, pieces, {value->dtype(), shape});
}

ir::Value* Legalizer::transposed(ir::Value* value, const std::vector<int64_t>& permutation) {
  Shape shape, from;
  const Shape strides = rowMajorStrides(value->shape());
  for (const int64_t axis : permutation) {
    shape.push_back(value->shape()[static_cast<size_t>(axis)]);
    from.push_back(strides[static_cast<size_t>(axis)]);
  }
  const Shape to = rowMajorStrides(shape);
  // Moving only axes of size 1 changes no address.
  Shape box = shape;
  ir::Ints source = from, target = to;
  mergeDimensions(box, {&source, &target});
  if (box.size() == 1) return npu_ir::createReshape(builder_, value, shape);
  if (box.size() == 2 && value->dtype() == DType::Int8) {
    const auto inRuns = [](int64_t planes, int64_t size) {
      return planes <= kMaxPlanes && size % kRun == 0 && size / kRun <= 65536;
    };
    if (inRuns(box[1], box[0])) return npu_ir::createReshape(builder_, interleaved(value, box[1]), shape);
    if (inRuns(box[0], box[1])) return npu_ir::createReshape(builder_, deinterleaved(value, box[0]), shape);
  }
  // The output writer of U85 permutes three axes. That takes a POOL, with twice as many steps for 16 bits
  // as for 8. Copies by the elementwise unit are faster if rows stay whole, or if few of them move 16-bit
  // elements one by one: one operation for each index of a third axis.
  const bool wholeRows = source.back() == 1 && target.back() == 1;
  const bool fewCopies = box.size() == 2 || *std::min_element(box.begin(), box.end()) <= kFewCopies;
  const bool copied = wholeRows || (value->dtype() == DType::Int16 && fewCopies);
  if (npu().transposingWriter && !copied && dtypeSize(value->dtype()) <= 2 && value->dtype() != DType::Bool) {
    std::vector<size_t> order(box.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return source[a] > source[b]; });
    const bool small = std::all_of(box.begin(), box.end(), [](int64_t size) { return size <= 65536; });
    if (box.size() <= 3 && small) {
      Shape map;
      for (const size_t d : order) map.push_back(box[d]);
      ir::Ints axes;
      for (size_t d = 0; d < box.size(); ++d) {
        axes.push_back(std::find(order.begin(), order.end(), d) - order.begin());
      }
      if (map.size() == 2) {
        map.insert(map.begin(), 1);
        axes = {0, axes[0] + 1, axes[1] + 1};
      }
      ir::Value* ifm = npu_ir::createReshape(builder_, value, map);
      ir::Value* result =
          npu_ir::createPool(builder_, ifm, npu_ir::PoolMode::SUM, {}, {}, value->dtype(), axes);
      return npu_ir::createReshape(builder_, result, shape);
    }
  }
  return rearranged(value, shape, shape, 0, from, 0, to);
}

ir::Value* Legalizer::interleaved(ir::Value* value, int64_t planes) {
  // Output channel i * planes + p of a run is element i of plane p: a kernel over the planes that selects it.
  // Unlike a copy, which would move single elements, this fills the channels of the hardware's blocks.
  const int64_t runs = value->numElements() / (planes * kRun);
  Tensor weight = Tensor::zeros(DType::Int8, {planes * kRun, planes, 1, kRun});
  for (int64_t i = 0; i < kRun; ++i) {
    for (int64_t p = 0; p < planes; ++p) weight.setIntegerAt(((i * planes + p) * planes + p) * kRun + i, 1);
  }
  npu_ir::Window window;
  window.kernel = {planes, 1};
  return npu_ir::createConv(
      builder_, npu_ir::createReshape(builder_, value, {planes, runs, kRun}), constant(std::move(weight)),
      constant(Tensor::zeros(DType::Int32, {planes * kRun})), window, {0}, {}, value->dtype());
}

ir::Value* Legalizer::deinterleaved(ir::Value* value, int64_t planes) {
  // The inverse: plane p of a run consists of channels p, planes + p, ... of adjacent elements in memory.
  const int64_t size = value->numElements() / planes, runs = size / kRun;
  ir::Value* map = npu_ir::createReshape(builder_, value, {1, runs, planes * kRun});
  std::vector<Piece> pieces;
  for (int64_t p = 0; p < planes; ++p) {
    Tensor weight = Tensor::zeros(DType::Int8, {kRun, 1, 1, planes * kRun});
    for (int64_t i = 0; i < kRun; ++i) weight.setIntegerAt(i * planes * kRun + i * planes + p, 1);
    ir::Value* plane =
        npu_ir::createConv(builder_, map, constant(std::move(weight)),
                           constant(Tensor::zeros(DType::Int32, {kRun})), {}, {0}, {}, value->dtype());
    pieces.push_back({plane, p * size, {size, kRun, 1}});
  }
  return npu_ir::createJoin(builder_, pieces, {value->dtype(), {planes, size}});
}

namespace {

/// A box of the shape, as height, width and depth, within a computed map; null if it has none.
ir::Value* boxOf(ir::Builder& builder, ir::Value* map, DType type, const Shape& shape) {
  const size_t rank = shape.size(), outer = rank - std::min<size_t>(rank, 3);
  if (!map || map->isConstant() || map->dtype() != type || map->shape().size() != rank) return nullptr;
  for (size_t d = 0; d < rank; ++d) {
    if (shape[d] > map->shape()[d] || (d < outer && shape[d] != 1)) return nullptr;
  }
  const Shape all = rowMajorStrides(map->shape());
  Shape box(shape.begin() + static_cast<std::ptrdiff_t>(outer), shape.end());
  Shape strides(all.begin() + static_cast<std::ptrdiff_t>(outer), all.end());
  while (box.size() < 3) {
    box.insert(box.begin(), 1);
    strides.insert(strides.begin(), map->numElements());
  }
  return npu_ir::createView(builder, map, type, box, 0, strides);
}

}  // namespace

ir::Value* Legalizer::filled(DType type, const Shape& shape, int64_t value, ir::Value* near) {
  // 8 and 16-bit values are written by an operation that clamps whatever it reads; others are constants.
  const int64_t depth = shape.back(), rows = numElements(shape) / depth;
  Tensor row = Tensor::zeros(type, {1, 1, depth});
  for (int64_t i = 0; i < depth; ++i) row.setIntegerAt(i, value);
  if (dtypeSize(type) <= 2 && value >= integerMin(type) && value <= integerMax(type) && rows <= 65536 &&
      depth <= 65536) {
    // The clamp makes every element the same, whatever is read.
    npu_ir::OutputStage stage;
    stage.clamp = {value, value};
    const DType codes = type == DType::Bool ? DType::Int8 : type;
    ir::Value* read = boxOf(builder_, near, codes, shape);
    if (!read) read = constant(Tensor::zeros(codes, {1, rows, depth}));
    return npu_ir::createReshape(builder_, npu_ir::createCopy(builder_, read, 0, stage, codes), shape);
  }
  Tensor whole = Tensor::zeros(type, shape);
  for (int64_t i = 0; i < whole.numElements(); ++i) whole.setIntegerAt(i, value);
  return constant(std::move(whole));
}

Result<ir::Value*> Legalizer::padded(ir::Value* value, const ir::Ints& padding, int64_t constantValue) {
  if (std::all_of(padding.begin(), padding.end(), [](int64_t p) { return p == 0; })) return value;
  Shape shape = value->shape();
  for (size_t d = 0; d < shape.size(); ++d) shape[d] += padding[2 * d] + padding[2 * d + 1];
  const Shape strides = rowMajorStrides(shape);
  std::vector<Piece> pieces;
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) offset += padding[2 * d] * strides[d];
  for (Piece& piece :
       emitCopies(builder_, {value, value->shape(), 0, rowMajorStrides(value->shape()), offset, strides})) {
    pieces.push_back(std::move(piece));
  }
  // One box before and one after the value along each axis; inner axes are already complete.
  const DType type = value->dtype();
  const auto fill = [&](const Shape& box, int64_t at) {
    ir::Value* part = filled(type, box, constantValue, value);
    if (part->isConstant()) {
      for (Piece& piece : emitCopies(builder_, {part, box, 0, rowMajorStrides(box), at, strides}))
        pieces.push_back(std::move(piece));
    } else {
      pieces.push_back({part, at, strides});
    }
  };
  Shape box = value->shape();
  for (size_t d = shape.size(); d-- > 0;) {
    // Outer axes still have the value's extent and start.
    int64_t start = 0;
    for (size_t o = 0; o < d; ++o) start += padding[2 * o] * strides[o];
    const int64_t inner = box[d];
    if (padding[2 * d] > 0) {
      box[d] = padding[2 * d];
      fill(box, start);
    }
    if (padding[2 * d + 1] > 0) {
      box[d] = padding[2 * d + 1];
      fill(box, start + (padding[2 * d] + inner) * strides[d]);
    }
    box[d] = shape[d];
  }
  if (static_cast<int64_t>(pieces.size()) > kMaxCopies)
    return fail(Code::HardwareLimit, "padding to {} takes {} copies, more than {}", shapeText(shape),
                pieces.size(), kMaxCopies)
        .withRemedy("merge some of its dimensions before the operator");
  return npu_ir::createJoin(builder_, pieces, {type, shape});
}

Result<ir::Value*> Legalizer::broadcastTo(ir::Value* value, const Shape& shape) {
  if (value->shape() == shape) return value;
  // Added to zeros of the full shape.
  const DType type = value->dtype() == DType::Bool ? DType::Int8 : value->dtype();
  if (value->dtype() != type) {
    value = npu_ir::createView(builder_, value, type, value->shape(), 0, rowMajorStrides(value->shape()));
  }
  return elementwise(npu_ir::ElementwiseMode::ADD, constant(Tensor::zeros(type, shape)), value, type);
}

Status Legalizer::lowerReshape(ir::Node* node) {
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  // The operation that computed the input may still absorb a following RESCALE or CLAMP, as long as channels
  // remain channels.
  std::vector<ir::Node*> operations;
  const ir::Value* input = node->operand(0);
  if (auto* found = fusable(input); found && node->result()->rank() > 0 && input->rank() > 0 &&
                                    input->shape().back() == node->result()->shape().back()) {
    operations = *found;
  }
  define(node->result(), value, std::move(operations));
  return {};
}

Status Legalizer::lowerTranspose(ir::Node* node) {
  const tosa::Transpose op(node);
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  define(node->result(), transposed(value, op.perms()));
  return {};
}

const ir::Node* Legalizer::longestBeginning(const ir::Node* node) {
  const auto& operands = node->operands();
  const auto axisOf = [](const ir::Node* concat) {
    return tosa::Concat(const_cast<ir::Node*>(concat)).axis();
  };
  const ir::Node* longest = nullptr;
  auto hash = static_cast<uint64_t>(axisOf(node));
  for (size_t i = 0; i < operands.size(); ++i) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(operands[i])) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    if (i == 0) continue;
    if (i + 1 == operands.size()) {
      concats_.try_emplace(hash, node);
    } else if (const auto known = concats_.find(hash);
               known != concats_.end() && axisOf(known->second) == axisOf(node) &&
               std::equal(known->second->operands().begin(), known->second->operands().end(),
                          operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(i) + 1)) {
      longest = known->second;
    }
  }
  return longest;
}

Status Legalizer::lowerConcat(ir::Node* node) {
  const tosa::Concat op(node);
  const Shape& shape = node->result()->shape();
  const Shape strides = rowMajorStrides(shape);
  std::vector<const ir::Value*> operands(node->operands().begin(), node->operands().end());
  // Dense blocks append one operand at a time: the earlier result is a part of this one, and neither it nor
  // its operands are copied.
  if (const ir::Node* beginning = longestBeginning(node)) {
    operands.erase(operands.begin(),
                   operands.begin() + static_cast<std::ptrdiff_t>(beginning->operands().size()));
    operands.insert(operands.begin(), beginning->result());
  }
  std::vector<Piece> pieces;
  int64_t offset = 0;
  for (const ir::Value* operand : operands) {
    CARINA_TRY(ir::Value * value, get(operand));
    pieces.push_back({value, offset, strides});
    offset += value->shape()[static_cast<size_t>(op.axis())] * strides[static_cast<size_t>(op.axis())];
  }
  define(node->result(), npu_ir::createJoin(builder_, pieces, {node->result()->dtype(), shape}));
  return {};
}

Status Legalizer::lowerSlice(ir::Node* node) {
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  define(node->result(), npu_ir::createSlice(builder_, value, constantValues(node->operand(1)),
                                             constantValues(node->operand(2))));
  return {};
}

Status Legalizer::lowerPad(ir::Node* node) {
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  CARINA_TRY(ir::Value * result,
             padded(value, constantValues(node->operand(1)), constantValue(node->operand(2))));
  define(node->result(), result);
  return {};
}

Status Legalizer::lowerTile(ir::Node* node) {
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  const ir::Ints multiples = constantValues(node->operand(1));
  const Shape& shape = node->result()->shape();
  bool spreads = true;
  for (size_t d = 0; d < multiples.size(); ++d) spreads &= multiples[d] == 1 || value->shape()[d] == 1;
  if (spreads) {
    CARINA_TRY(ir::Value * result, broadcastTo(value, shape));
    define(node->result(), result);
    return {};
  }
  for (size_t d = multiples.size(); d-- > 0;) value = repeated(value, d, multiples[d]);
  define(node->result(), value);
  return {};
}

ir::Value* Legalizer::repeated(ir::Value* value, size_t axis, int64_t times) {
  if (times == 1) return value;
  // Many repetitions are copies of copies.
  const int64_t step = times <= kMaxRun ? 1 : std::max<int64_t>(times / kMaxRun, kMaxRun);
  ir::Value* unit = repeated(value, axis, std::min(step, times));
  Shape shape = value->shape();
  const int64_t extent = shape[axis];
  shape[axis] = extent * times;
  const Shape strides = rowMajorStrides(shape);
  std::vector<Piece> pieces;
  for (int64_t done = 0; done < times; done += step) {
    Shape box = unit->shape();
    box[axis] = std::min(step, times - done) * extent;
    for (Piece& piece : emitCopies(builder_, {unit, box, 0, rowMajorStrides(unit->shape()),
                                              done * extent * strides[axis], strides}))
      pieces.push_back(std::move(piece));
  }
  return npu_ir::createJoin(builder_, pieces, {value->dtype(), shape});
}

ir::Value* Legalizer::reversed(ir::Value* value, size_t axis) {
  const Shape shape = value->shape(), strides = rowMajorStrides(shape);
  const int64_t size = shape[axis];
  // One copy per position: addresses never run backwards. Many positions are first reversed in runs.
  const int64_t run = size <= kMaxRun ? 1 : std::max<int64_t>(size / kMaxRun, kMaxRun);
  std::vector<Piece> pieces;
  for (int64_t at = 0; at < size; at += run) {
    const int64_t count = std::min(run, size - at);
    Shape box = shape;
    box[axis] = count;
    for (Piece& piece : emitCopies(builder_, {value, box, at * strides[axis], strides,
                                              (size - at - count) * strides[axis], strides}))
      pieces.push_back(std::move(piece));
  }
  ir::Value* runs = npu_ir::createJoin(builder_, pieces, {value->dtype(), shape});
  if (run == 1) return runs;
  // Each run, now in its place, is reversed: all complete ones at once, as another dimension.
  const int64_t whole = size / run, rest = size - whole * run;
  Shape split = shape;
  split[axis] = run;
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(axis), whole);
  ir::Ints step = strides;
  step.insert(step.begin() + static_cast<std::ptrdiff_t>(axis), run * strides[axis]);
  ir::Value* turned = reversed(
      npu_ir::createView(builder_, runs, value->dtype(), split, rest * strides[axis], step), axis + 1);
  pieces = {{turned, rest * strides[axis], step}};
  if (rest > 0) {
    // The incomplete run comes first.
    Shape start(shape.size(), 0), box = shape;
    box[axis] = rest;
    pieces.push_back({reversed(npu_ir::createSlice(builder_, runs, start, box), axis), 0, strides});
  }
  return npu_ir::createJoin(builder_, pieces, {value->dtype(), shape});
}

Status Legalizer::lowerReverse(ir::Node* node) {
  const tosa::Reverse op(node);
  CARINA_TRY(ir::Value * value, get(node->operand(0)));
  const auto axis = static_cast<size_t>(op.axis());
  define(node->result(), value->shape()[axis] == 1 ? value : reversed(value, axis));
  return {};
}

}  // namespace carina::compiler
