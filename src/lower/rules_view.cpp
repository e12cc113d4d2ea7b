// SPDX-License-Identifier: Apache-2.0
// Operators that only reinterpret the same elements: they change the layout and emit nothing, unless a
// broadcast actually repeats elements.
#include <algorithm>
#include <array>
#include <numeric>

#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"
#include "lower/rules.hpp"
#include "lower/whole_numbers.hpp"

namespace carina::lower {
namespace {

int wrap(int64_t dim, int64_t rank) {
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

/// Any operator that keeps the row-major order of elements: only the result's shape matters.
Status lowerView(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(const StoredTensor data, lowering.movable(node.operands()[0]));
  return lowering.defineMoved(node.result(), node.operands()[0],
                              lowering.viewed(data, node.result()->shape()));
}

Status definePermuted(Lowering& lowering, const ir::Node& node, const std::vector<int>& permutation) {
  CARINA_TRY(StoredTensor data, lowering.movable(node.operands()[0]));
  data.layout = data.layout.permuted(permutation);
  return lowering.defineMoved(node.result(), node.operands()[0], std::move(data));
}

std::vector<int> identity(int64_t rank) {
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Status lowerPermute(Lowering& lowering, const ir::Node& node) {
  std::vector<int> permutation;
  const int64_t rank = node.operands()[0]->rank();
  for (int64_t d : ir::cast<aten::Permute>(&node).dims()) permutation.push_back(wrap(d, rank));
  return definePermuted(lowering, node, permutation);
}

Status swapDims(Lowering& lowering, const ir::Node& node, int64_t a, int64_t b) {
  const int64_t rank = node.operands()[0]->rank();
  if (rank == 0) return lowerView(lowering, node);
  std::vector<int> permutation = identity(rank);
  std::swap(permutation[static_cast<size_t>(wrap(a, rank))], permutation[static_cast<size_t>(wrap(b, rank))]);
  return definePermuted(lowering, node, permutation);
}

Status lowerTranspose(Lowering& lowering, const ir::Node& node) {
  const aten::TransposeInt op = ir::cast<aten::TransposeInt>(&node);
  return swapDims(lowering, node, op.dim0(), op.dim1());
}

/// t, mT: the last two dimensions; numpy_T: all reversed.
Status lowerMatrixTranspose(Lowering& lowering, const ir::Node& node) {
  const int64_t rank = node.operands()[0]->rank();
  std::vector<int> permutation = identity(rank);
  if (ir::isa<aten::NumpyT>(&node))
    std::reverse(permutation.begin(), permutation.end());
  else if (rank >= 2)
    std::swap(permutation[static_cast<size_t>(rank) - 1], permutation[static_cast<size_t>(rank) - 2]);
  return definePermuted(lowering, node, permutation);
}

/// The moved dimensions go to their destinations; the others keep their order.
Status moveDims(Lowering& lowering, const ir::Node& node, const ir::Ints& source,
                const ir::Ints& destination) {
  const int64_t rank = node.operands()[0]->rank();
  if (rank == 0) return lowerView(lowering, node);
  std::vector<int> permutation(static_cast<size_t>(rank), -1);
  std::vector<bool> moved(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < source.size(); ++i) {
    const int from = wrap(source[i], rank);
    permutation[static_cast<size_t>(wrap(destination[i], rank))] = from;
    moved[static_cast<size_t>(from)] = true;
  }
  int next = 0;
  for (int& p : permutation) {
    if (p >= 0) continue;
    while (moved[static_cast<size_t>(next)]) ++next;
    p = next++;
  }
  return definePermuted(lowering, node, permutation);
}

Status lowerMovedim(Lowering& lowering, const ir::Node& node) {
  if (const auto op = ir::dynCast<aten::MovedimInt>(&node)) {
    return moveDims(lowering, node, {op.source()}, {op.destination()});
  }
  const auto op = ir::cast<aten::MovedimIntlist>(&node);
  return moveDims(lowering, node, op.source(), op.destination());
}

/// Operators that repeat a tensor.
std::array<const ir::OpDef*, 5> repeats() {
  return {&aten::Expand::def(), &aten::ExpandAs::def(), &aten::BroadcastTo::def(), &aten::Repeat::def(),
          &aten::Tile::def()};
}

/// Repeats along dimensions of size 1 and new leading ones; also repeat and tile, whose result shape
/// determines how often.
Status lowerRepeat(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(StoredTensor data, lowering.movable(node.operands()[0]));
  const Shape& result = node.result()->shape();
  Shape shape = data.shape();
  shape.insert(shape.begin(), result.size() - shape.size(), 1);
  data = lowering.viewed(data, shape);
  if (shape == result) return lowering.defineMoved(node.result(), node.operands()[0], std::move(data));
  const std::vector<int> order = lowering.commonOrder({data});
  Shape multiples;
  for (int d : order) multiples.push_back(result[static_cast<size_t>(d)] / shape[static_cast<size_t>(d)]);
  ir::Value* value = lowering.emit().tile(lowering.ordered(data, order), multiples);
  return lowering.defineMoved(node.result(), node.operands()[0], {value, Layout::ordered(result, order)});
}

/// The elements of a conversion's input in a type that CAST accepts. uint8 has none in TOSA: its values are
/// int32 (for results in int16: int16) numbers from 0 to 255.
Result<StoredTensor> numbersOf(Lowering& lowering, const ir::Value* input, DType to) {
  if (const auto codes = lowering.lessHalf(input)) {
    CARINA_TRY(ir::Value* const numbers,
               lowering.emit().rescale(codes->value, to == DType::Int16 ? to : DType::Int32, -128, 0,
                                       std::array{1.0}));
    return StoredTensor{numbers, codes->layout};
  }
  if (!input->isConstant() || !isUnsigned(input->dtype())) return lowering.integers(input);
  return StoredTensor{lowering.emit().constant(convert(input->constant(), DType::Int32)),
                      Layout::rowMajor(input->shape())};
}

/// Integers and bool in another such type; to fewer bits modulo 2^bits, as in PyTorch. int64 is int32.
Result<StoredTensor> convertedIntegers(Lowering& lowering, const ir::Value* input, const ir::Value* result) {
  const DType from = input->dtype(), to = result->dtype() == DType::Int64 ? DType::Int32 : result->dtype();
  if (to == DType::Int8) {
    if (auto bytes = lowering.bytes(input)) return *bytes;
  }
  CARINA_TRY(StoredTensor data, numbersOf(lowering, input, to));
  Emitter& emit = lowering.emit();
  if (to != DType::UInt8) {
    if (data.dtype() != to) data.value = emit.cast(data.value, to);
    return data;
  }
  const auto& uses = result->uses();
  if (!std::all_of(uses.begin(), uses.end(),
                   [](const ir::Use& use) { return decompose::isConversion(*use.node); })) {
    return fail(Code::NoIntegerForm,
                "uint8 values are only converted on the NPU, and this one is computed with")
        .withRemedy("convert it to int32 instead of uint8");
  }
  if (data.dtype() != DType::Int32) data.value = emit.cast(data.value, DType::Int32);
  if (from != DType::Bool && from != DType::UInt8)
    data.value = emit.binary(Binary::BitwiseAnd, data.value, emit.number(255, data.value));
  return data;
}

/// Conversions between floats, between integers, and between both.
Status lowerCast(Lowering& lowering, const ir::Node& node) {
  const ir::Value* input = node.operands()[0];
  const ir::Value* result = node.result();
  if (lowering.isFloatValue(input) && lowering.isFloatValue(result)) {
    CARINA_TRY(QuantizedValue real, lowering.quantizedValue(input));
    lowering.define(result, std::move(real));
    return {};
  }
  if (!isFloat(input->dtype()) && !isFloat(result->dtype())) {
    CARINA_TRY(StoredTensor data, convertedIntegers(lowering, input, result));
    lowering.define(result, std::move(data));
    return {};
  }
  if (!isFloat(input->dtype())) {
    if (const auto codes = lowering.lessHalf(input)) {
      lowering.define(result, QuantizedValue{*codes, {1.0}, -128, false, {}, {}, {}, {}});
      return {};
    }
    // Integers become values of scale 1, which a quantize node converts to its codes.
    CARINA_TRY(StoredTensor data, numbersOf(lowering, input, DType::Int32));
    if (data.dtype() != DType::Int32) data.value = lowering.emit().cast(data.value, DType::Int32);
    defineAccumulator(lowering, result, std::move(data), 1.0);
    return {};
  }
  if (result->dtype() == DType::UInt8) {
    return fail(Code::NoIntegerForm, "conversions from {} to {} are not supported on the NPU",
                dtypeName(input->dtype()), dtypeName(result->dtype()))
        .withRemedy("convert to int32 instead of uint8");
  }
  const DType to = result->dtype() == DType::Int64 ? DType::Int32 : result->dtype();
  CARINA_TRY(StoredTensor numbers, truncatedIntegers(lowering, input, to));
  lowering.define(result, std::move(numbers));
  return {};
}

}  // namespace

bool isRepeat(const ir::Node& node) {
  const auto defs = repeats();
  return std::any_of(defs.begin(), defs.end(), [&](const ir::OpDef* def) { return node.is(*def); });
}

void addViewRules(Rules& rules) {
  for (const ir::OpDef* def :
       {&aten::View::def(), &aten::Reshape::def(), &aten::ViewAs::def(), &aten::ReshapeAs::def(),
        &aten::FlattenUsingInts::def(), &aten::UnflattenInt::def(), &aten::Squeeze::def(),
        &aten::SqueezeDim::def(), &aten::SqueezeDims::def(), &aten::Unsqueeze::def(), &aten::Clone::def(),
        &aten::Contiguous::def(), &aten::Alias::def(), &aten::Dropout::def(), &aten::LiftFreshCopy::def(),
        &aten::NanToNum::def() /* codes are numbers */}) {
    rules[def] = lowerView;
  }
  rules[&aten::Permute::def()] = lowerPermute;
  rules[&aten::TransposeInt::def()] = lowerTranspose;
  rules[&aten::TransposeMatrix::def()] = rules[&aten::MT::def()] = rules[&aten::NumpyT::def()] =
      lowerMatrixTranspose;
  rules[&aten::MovedimInt::def()] = rules[&aten::MovedimIntlist::def()] = lowerMovedim;
  for (const ir::OpDef* def : repeats()) rules[def] = lowerRepeat;
  for (const ir::OpDef* def : {&aten::ToDtype::def(), &aten::ToDtypeLayout::def(), &aten::ToDevice::def(),
                               &aten::ToOther::def(), &aten::PrivateToCopy::def(), &aten::TypeAs::def()}) {
    rules[def] = lowerCast;
  }
}

}  // namespace carina::lower
