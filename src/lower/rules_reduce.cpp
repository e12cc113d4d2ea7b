// SPDX-License-Identifier: Apache-2.0
// Sums, means and extremes over dimensions.
#include <algorithm>
#include <cmath>

#include "aten/ops.hpp"
#include "lower/reduction.hpp"
#include "lower/rules.hpp"

namespace carina::lower {
namespace {

/// Maximum number of elements in a running sum: the area of a kernel that every Ethos-U supports.
constexpr int64_t kMaxSummed = 4096;

Status lowerSumOrMean(Lowering& lowering, const ir::Node& node, const std::optional<ir::Ints>& dims,
                      bool mean) {
  const ir::Value* input = node.operands()[0];
  const bool isFloatValue = lowering.isFloatValue(input);
  StoredTensor data;
  double scale = 1;
  int64_t zero = 0;
  if (isFloatValue) {
    CARINA_TRY(QuantizedValue real, lowering.plainValue(input));
    data = real.data;
    scale = real.scale();
    zero = real.zeroPoint;
  } else {
    CARINA_TRY(data, lowering.integers(input));
    if (data.dtype() == DType::Bool) data.value = lowering.emit().cast(data.value, DType::Int32);
  }
  const std::vector<int> wrapped = wrappedDims(dims, input->rank());
  const Reduction reduction = reductionOf(lowering, data, wrapped);
  CARINA_TRY(const Sum sum, summed(lowering, reduction, zero));
  scale = std::ldexp(scale, sum.shift);
  StoredTensor result{sum.value, resultLayout(reduction, input->shape(), node.result()->shape())};
  if (!isFloatValue) {
    if (sum.shift > 0) {
      return fail(Code::NoIntegerForm, "the sum of {} 8-bit numbers can exceed 32 bits", reduction.count())
          .withRemedy("sum parts of the tensor, and add the sums");
    }
    lowering.define(node.result(), std::move(result));
    return {};
  }
  defineAccumulator(lowering, node.result(), std::move(result),
                    mean ? scale / static_cast<double>(reduction.count()) : scale);
  return {};
}

Status lowerSum(Lowering& l, const ir::Node& n) {
  return lowerSumOrMean(l, n, std::nullopt, false);
}
Status lowerSumDims(Lowering& l, const ir::Node& n) {
  return lowerSumOrMean(l, n, ir::cast<aten::SumDimIntList>(&n).dim(), false);
}
Status lowerMean(Lowering& l, const ir::Node& n) {
  return lowerSumOrMean(l, n, std::nullopt, true);
}
Status lowerMeanDims(Lowering& l, const ir::Node& n) {
  return lowerSumOrMean(l, n, ir::cast<aten::MeanDim>(&n).dim(), true);
}

/// Reduces the codes: they are ordered like the values they represent, so the scale does not change.
Status reduceExtreme(Lowering& lowering, const ir::Node& node, Reduce op,
                     const std::optional<ir::Ints>& dims) {
  const ir::Value* input = node.operands()[0];
  CARINA_TRY(const StoredTensor data, lowering.movable(input));
  const Reduction r = reductionOf(lowering, data, wrappedDims(dims, input->rank()));
  ir::Value* value = lowering.emit().reshape(
      r.value, r.inner == 1 ? Shape{r.outer, r.count()} : Shape{r.outer, r.count(), r.inner});
  value = lowering.emit().reduce(op, value, 1);
  return lowering.defineMoved(node.result(0), input,
                              {value, resultLayout(r, input->shape(), node.result(0)->shape())});
}

Status lowerAmax(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, Reduce::Max, ir::cast<aten::Amax>(&n).dim());
}
Status lowerAmin(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, Reduce::Min, ir::cast<aten::Amin>(&n).dim());
}
Status lowerMaxAll(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, Reduce::Max, std::nullopt);
}
Status lowerMinAll(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, Reduce::Min, std::nullopt);
}

template <Reduce kOp, typename Op>
Status lowerAnyDim(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, kOp, ir::Ints{ir::cast<Op>(&n).dim()});
}
template <Reduce kOp, typename Op>
Status lowerAnyDims(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, kOp, ir::cast<Op>(&n).dim());
}
template <Reduce kOp>
Status lowerAny(Lowering& l, const ir::Node& n) {
  return reduceExtreme(l, n, kOp, std::nullopt);
}

template <typename Op>
Status lowerExtremeDim(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  if (!node.result(1)->unused())
    return fail(Code::NoIntegerForm, "the indices of {} are used", node.opName())
        .withRemedy("use amax or argmax");
  return reduceExtreme(lowering, node, std::is_same_v<Op, aten::MaxDim> ? Reduce::Max : Reduce::Min,
                       ir::Ints{op.dim()});
}

/// The first of the largest elements. For the smallest, codes are complemented.
template <typename Op>
Status lowerArgExtreme(Lowering& lowering, const ir::Node& node) {
  const Op op = ir::cast<Op>(&node);
  const ir::Value* input = op.self();
  CARINA_TRY(const StoredTensor data, lowering.movable(input));
  std::optional<ir::Ints> dims;
  if (op.dim()) dims = ir::Ints{*op.dim()};
  // Without dimensions, the index counts in aten order.
  Reduction r;
  if (dims) {
    r = reductionOf(lowering, data, wrappedDims(dims, input->rank()));
  } else {
    r.value = lowering.rowMajor(data);
    r.reduced = {input->numElements()};
  }
  ir::Value* value = lowering.emit().reshape(
      r.value, r.inner == 1 ? Shape{r.outer, r.count()} : Shape{r.outer, r.count(), r.inner});
  if constexpr (std::is_same_v<Op, aten::Argmin>) value = lowering.emit().unary(Unary::BitwiseNot, value);
  value = lowering.emit().argmax(value, 1);
  const Shape& result = node.result()->shape();
  const Layout layout = dims ? resultLayout(r, input->shape(), result) : Layout::rowMajor(result);
  lowering.define(node.result(), StoredTensor{value, layout});
  return {};
}

/// A running sum is a product with a triangle of ones: a 1x1 convolution whose channels are the summed
/// dimension.
Status lowerCumsum(Lowering& lowering, const ir::Node& node) {
  const aten::Cumsum op = ir::cast<aten::Cumsum>(&node);
  const int64_t rank = op.self()->rank();
  if (rank == 0)
    return fail(Code::NoIntegerForm, "the running sum is over a scalar")
        .withRemedy("leave it out: its result is the scalar itself");
  const int64_t dim = wrapped(op.dim(), rank), extent = op.self()->dim(dim);
  CARINA_TRY(const QuantizedValue input, lowering.plainValue(op.self()));
  const bool wide = input.data.dtype() == DType::Int16;
  if (!wide && input.data.dtype() != DType::Int8)
    return fail(Code::NoIntegerForm, "the running sum of {} is not supported on the NPU",
                dtypeName(input.data.dtype()))
        .withRemedy("quantize it to int8");
  if (extent > kMaxSummed) {
    return fail(Code::NoIntegerForm, "the running sum is over {} elements, more than {}", extent, kMaxSummed)
        .withRemedy("sum parts of the dimension, and add the last sum of each to the next");
  }
  std::vector<int> order;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != dim) order.push_back(static_cast<int>(d));
  }
  order.push_back(static_cast<int>(dim));
  Emitter& emit = lowering.emit();
  Tensor triangle = Tensor::zeros(DType::Int8, {extent, 1, 1, extent});
  const auto weights = triangle.mutableAs<int8_t>();
  for (int64_t to = 0; to < extent; ++to) {
    for (int64_t from = 0; from <= to; ++from) weights[static_cast<size_t>(to * extent + from)] = 1;
  }
  ir::Value* rows =
      emit.reshape(lowering.ordered(input.data, order), {1, 1, op.self()->numElements() / extent, extent});
  ir::Value* sums = emit.conv2d(rows, emit.constant(std::move(triangle)),
                                emit.constant(Tensor::zeros(wide ? DType::Int48 : DType::Int32, {extent})),
                                input.zeroPoint, 0, {{1, 1}, {1, 1}, {0, 0, 0, 0}});
  defineAccumulator(lowering, node.result(), {sums, Layout::ordered(op.self()->shape(), order)},
                    input.scale());
  return {};
}

}  // namespace

void addReduceRules(Rules& rules) {
  rules[&aten::Sum::def()] = lowerSum;
  rules[&aten::SumDimIntList::def()] = lowerSumDims;
  rules[&aten::Mean::def()] = lowerMean;
  rules[&aten::MeanDim::def()] = lowerMeanDims;
  rules[&aten::Amax::def()] = lowerAmax;
  rules[&aten::Amin::def()] = lowerAmin;
  rules[&aten::Max::def()] = lowerMaxAll;
  rules[&aten::Min::def()] = lowerMinAll;
  rules[&aten::MaxDim::def()] = lowerExtremeDim<aten::MaxDim>;
  rules[&aten::MinDim::def()] = lowerExtremeDim<aten::MinDim>;
  rules[&aten::Cumsum::def()] = lowerCumsum;
  rules[&aten::Argmax::def()] = lowerArgExtreme<aten::Argmax>;
  rules[&aten::Argmin::def()] = lowerArgExtreme<aten::Argmin>;
  rules[&aten::Any::def()] = lowerAny<Reduce::Any>;
  rules[&aten::AnyDim::def()] = lowerAnyDim<Reduce::Any, aten::AnyDim>;
  rules[&aten::AnyDims::def()] = lowerAnyDims<Reduce::Any, aten::AnyDims>;
  rules[&aten::All::def()] = lowerAny<Reduce::All>;
  rules[&aten::AllDim::def()] = lowerAnyDim<Reduce::All, aten::AllDim>;
  rules[&aten::AllDims::def()] = lowerAnyDims<Reduce::All, aten::AllDims>;
}

}  // namespace carina::lower
