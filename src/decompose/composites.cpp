// SPDX-License-Identifier: Apache-2.0
#include "decompose/composites.hpp"

#include <algorithm>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "decompose/composite.hpp"

namespace carina::decompose {

using namespace aten;
namespace {

using namespace composite;

// Products
// --------------------------------------------------------------------------------------------------------------

/// Sums over pairs of dimensions, as a matrix product of kept and contracted dimensions.
Value* contracted(Composite& c, Value* x, Value* y, const Ints& ofX, const Ints& ofY) {
  const auto has = [](const Ints& dims, int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  Ints orderX, orderY = ofY, shape;  // kept dimensions first in x, last in y
  int64_t rows = 1, inner = 1, columns = 1;
  for (int64_t d = 0; d < x->rank(); ++d) {
    if (has(ofX, d)) continue;
    orderX.push_back(d), shape.push_back(x->dim(d)), rows *= x->dim(d);
  }
  for (size_t i = 0; i < ofX.size(); ++i) {
    if (x->dim(ofX[i]) != y->dim(ofY[i])) return nullptr;
    orderX.push_back(ofX[i]), inner *= x->dim(ofX[i]);
  }
  for (int64_t d = 0; d < y->rank(); ++d) {
    if (has(ofY, d)) continue;
    orderY.push_back(d), shape.push_back(y->dim(d)), columns *= y->dim(d);
  }
  Value* left = c.reshape(c.permute(x, orderX), {rows, inner});
  Value* right = c.reshape(c.permute(y, orderY), {inner, columns});
  return c.reshape(Mm::create(c.b(), left, right), shape);
}

Result<Results> tensordot(Composite& c) {
  Value *x = c.operand("self"), *y = c.operand("other");
  Ints ofX = c.arguments().ints("dims_self"), ofY = c.arguments().ints("dims_other");
  if (ofX.size() != ofY.size()) return none();
  for (size_t i = 0; i < ofX.size(); ++i) {
    CARINA_TRY(ofX[i], wrapDim(ofX[i], x->rank()));
    CARINA_TRY(ofY[i], wrapDim(ofY[i], y->rank()));
  }
  return Results{contracted(c, x, y, ofX, ofY)};
}

Result<Results> inner(Composite& c) {
  Value *x = c.operand("self"), *y = c.operand("other");
  if (x->rank() == 0 || y->rank() == 0) return Results{c.mul(x, y)};
  return Results{contracted(c, x, y, {x->rank() - 1}, {y->rank() - 1})};
}

Result<Results> kron(Composite& c) {
  Value *x = c.operand("self"), *y = c.operand("other");
  const int64_t rank = std::max(x->rank(), y->rank());
  Ints wide, tall, shape;
  for (int64_t d = 0; d < rank; ++d) {
    const auto size = [&](const Value* v) { return d < rank - v->rank() ? 1 : v->dim(d - rank + v->rank()); };
    wide.insert(wide.end(), {size(x), 1});
    tall.insert(tall.end(), {1, size(y)});
    shape.push_back(size(x) * size(y));
  }
  return Results{c.reshape(c.mul(c.reshape(x, wide), c.reshape(y, tall)), shape)};
}

/// The product of a chain of matrices, of which the first and the last may be vectors: first the neighbours
/// whose product is the cheapest.
Result<Results> matrixChain(Composite& c) {
  const auto given = c.node().operandGroup(0);
  std::vector<Value*> chain(given.begin(), given.end());
  const auto cost = [&](size_t i) {
    return numElements(chain[i]->shape()) * (chain[i + 1]->rank() == 2 ? chain[i + 1]->dim(1) : 1);
  };
  while (chain.size() > 1) {
    size_t next = 0;
    for (size_t i = 1; i + 1 < chain.size(); ++i) next = cost(i) < cost(next) ? i : next;
    chain[next] = Matmul::create(c.b(), chain[next], chain[next + 1]);
    chain.erase(chain.begin() + static_cast<std::ptrdiff_t>(next) + 1);
  }
  return Results{chain.empty() ? nullptr : chain[0]};
}

/// By repeated squaring, for exponents from 1 on.
Result<Results> matrixPower(Composite& c) {
  Value *square = c.operand("self"), *power = nullptr;
  for (int64_t n = c.arguments().integer("n"); n > 0; n /= 2) {
    if (n % 2 == 1) power = power ? Matmul::create(c.b(), power, square) : square;
    if (n > 1) square = Matmul::create(c.b(), square, square);
  }
  return Results{power};
}

/// Element i is x[i + 1] * y[i + 2] - x[i + 2] * y[i + 1], where the positions are those of a circle.
Result<Results> cross(Composite& c) {
  Value *x = c.operand("self"), *y = c.operand("other");
  const Shape& shape = c.node().result()->shape();
  x = c.expand(x, shape), y = c.expand(y, shape);
  const bool isLinalg = c.node().opName() == "aten.linalg_cross.default";
  // aten.cross takes the first dimension of size 3 if none is given.
  const int64_t first = std::find(shape.begin(), shape.end(), 3) - shape.begin();
  CARINA_TRY(const int64_t dim, wrapDim(c.arguments().integer("dim", isLinalg ? -1 : first),
                                        static_cast<int64_t>(shape.size())));
  const auto from = [&](Value* v, int64_t i) { return Roll::create(c.b(), v, Ints{-i}, Ints{dim}); };
  Value *x1 = from(x, 1), *x2 = from(x, 2), *y1 = from(y, 1), *y2 = from(y, 2);
  Value *minuend = c.mul(x1, y2), *subtrahend = c.mul(x2, y1);
  return Results{c.sub(minuend, subtrahend)};
}

Result<Results> vdot(Composite& c) {  // of real vectors
  return Results{Dot::create(c.b(), c.operand("self"), c.operand("other"))};
}
Result<Results> ger(Composite& c) {
  return Results{Outer::create(c.b(), c.operand("self"), c.operand("vec2"))};
}

/// x1^T W y1 for every sample and every matrix of W [out, in1, in2], plus bias.
Result<Results> bilinear(Composite& c) {
  Value *x = c.operand("input1"), *y = c.operand("input2"), *w = c.operand("weight");
  if (w->rank() != 3 || x->rank() == 0 || y->rank() == 0) return none();
  const int64_t out = w->dim(0), first = w->dim(1), second = w->dim(2);
  if (first == 0 || second == 0) return none();
  const int64_t samples = x->numElements() / first;
  Value* matrix = c.reshape(c.permute(w, {1, 0, 2}), {first, out * second});
  Value* half = c.reshape(Mm::create(c.b(), c.reshape(x, {samples, first}), matrix), {samples, out, second});
  Value* result = Bmm::create(c.b(), half, c.reshape(y, {samples, second, 1}));
  Ints shape(x->shape().begin(), x->shape().end() - 1);
  shape.push_back(out);
  result = c.reshape(result, shape);
  if (Value* bias = c.operand("bias")) result = c.add(result, bias);
  return Results{result};
}

/// The product of three tensors with new dimensions of size 1, summed.
Result<Results> trilinear(Composite& c) {
  Value* product = nullptr;
  for (const char* name : {"1", "2", "3"}) {
    Value* x = c.operand(std::string("i") + name);
    for (int64_t d : c.arguments().ints(std::string("expand") + name)) x = Unsqueeze::create(c.b(), x, d);
    product = product ? c.mul(product, x) : x;
  }
  const Ints dims = c.arguments().ints("sumdim");
  return Results{dims.empty() ? product : c.sum(product, dims, false)};
}

/// One-dimensional weights, and biases that must be broadcast to one number per output; the usual forms are
/// kept.
Result<Results> linear(Composite& c) {
  Value *x = c.operand("input"), *weight = c.operand("weight"), *bias = c.operand("bias");
  const bool vector = weight->rank() == 1;
  if (!vector && (!bias || bias->shape() == Shape{weight->dim(0)})) return none();
  if (!vector && bias->rank() <= 1)
    return Results{Linear::create(c.b(), x, weight, c.expand(bias, {weight->dim(0)}))};
  Value* product = vector ? Matmul::create(c.b(), x, weight) : Linear::create(c.b(), x, weight, nullptr);
  return Results{bias ? c.add(product, bias) : product};
}

// Differences
// -------------------------------------------------------------------------------------------------------------

/// Sums (or differences) of neighbours along a dimension.
Value* ofNeighbours(Composite& c, Value* x, int64_t dim, bool difference) {
  const int64_t size = x->dim(dim);
  Value *first = c.slice(x, dim, 0, size - 1), *second = c.slice(x, dim, 1, size);
  return difference ? c.sub(second, first) : c.add(second, first);
}

Result<Results> diff(Composite& c) {
  Value* x = c.operand("self");
  if (x->rank() == 0 || x->dtype() == DType::Bool) return none();
  CARINA_TRY(const int64_t dim, wrapDim(c.arguments().integer("dim", -1), x->rank()));
  Value *before = c.operand("prepend"), *behind = c.operand("append");
  if (before) x = Cat::create(c.b(), {before, x}, dim);
  if (behind) x = Cat::create(c.b(), {x, behind}, dim);
  const int64_t times = c.arguments().integer("n", 1);
  if (times < 1 || times >= x->dim(dim)) return none();
  for (int64_t i = 0; i < times; ++i) x = ofNeighbours(c, x, dim, true);
  return Results{x};
}

Result<Results> trapezoid(Composite& c) {
  Value* y = c.operand("y");
  if (y->rank() == 0 || y->dtype() != DType::Float32) return none();
  CARINA_TRY(const int64_t dim, wrapDim(c.arguments().integer("dim", -1), y->rank()));
  const bool cumulative = c.node().opName().find("cumulative") != std::string_view::npos;
  if (y->dim(dim) < 2) {  // no neighbours, no areas
    if (cumulative) return none();
    return Results{c.expand(c.number(0, y->dtype()), c.node().result()->shape())};
  }
  Value* areas = MulScalar::create(c.b(), ofNeighbours(c, y, dim, false), c.arguments().real("dx", 1) / 2);
  return Results{cumulative ? Cumsum::create(c.b(), areas, dim) : c.sum(areas, {dim}, false)};
}

// Losses, for networks that evaluate their own reconstruction
// -----------------------------------------------------------------------

Result<Results> elementLoss(Composite& c) {
  Value* apart = c.sub(c.operand("self"), c.operand("target"));
  if (apart->dtype() != DType::Float32) return none();
  const bool squared = c.node().opName() == "aten.mse_loss.default";
  Value* loss = squared ? c.mul(apart, apart) : Abs::create(c.b(), apart);
  const int64_t reduction = c.arguments().integer("reduction", 1);
  if (reduction == 0) return Results{loss};
  return Results{reduction == 1 ? Mean::create(c.b(), loss) : Sum::create(c.b(), loss)};
}

// Normalisations
// ----------------------------------------------------------------------------------------------------------

/// v * (g / |v|), the length of v over all dimensions but `dim` (-1: over all).
Result<Results> weightNorm(Composite& c) {
  Value *v = c.operand("v"), *g = c.operand("g");
  Ints dims;
  for (int64_t d = 0; d < v->rank(); ++d) {
    if (d != c.arguments().integer("dim")) dims.push_back(d);
  }
  Value* length = Sqrt::create(c.b(), c.sum(c.mul(v, v), dims, true));
  return Results{c.mul(v, DivTensor::create(c.b(), g, length))};
}

/// Norms of vectors under other names: Frobenius norms, and linalg_norm unless it is that of a matrix.
Result<Results> vectorNorm(Composite& c) {
  const Arguments& a = c.arguments();
  const bool frobenius = c.node().opName() != "aten.linalg_norm.default";
  std::optional<Ints> dims;
  if (frobenius || a.given("dim")) dims = a.ints("dim");
  const bool isMatrix = dims ? dims->size() > 1 : c.operand("self")->rank() > 1;
  if (a.text("ord", "fro") != "fro" || a.given("dtype") || (!frobenius && isMatrix && a.given("ord")))
    return none();
  return Results{LinalgVectorNorm::create(c.b(), c.operand("self"), frobenius ? 2.0 : a.real("ord", 2), dims,
                                          a.boolean("keepdim"))};
}

/// dist: the norm of all differences.
Result<Results> distance(Composite& c) {
  Value* apart = c.sub(c.operand("self"), c.operand("other"));
  return Results{LinalgVectorNorm::create(c.b(), apart, c.arguments().real("p", 2))};
}

/// Batch norm under its native names in evaluation, with running statistics.
Result<Results> evaluatedBatchNorm(Composite& c) {
  Value *mean = c.operand("running_mean"), *variance = c.operand("running_var");
  if (c.arguments().boolean("training") || !mean || !variance) return none();
  return Results{PrivateNativeBatchNormLegitNoTraining::create(
                     c.b(), c.operand("input"), c.operand("weight"), c.operand("bias"), mean, variance,
                     c.arguments().real("momentum"), c.arguments().real("eps"))
                     .node()
                     ->result(0)};
}

/// Batch norm with the statistics of the batch; its other results are the mean and 1 / deviation.
Result<Results> batchStatisticsNorm(Composite& c) {
  Value* x = c.operand("input");
  const double eps = c.arguments().real("eps");
  if (x->rank() < 2 || x->dtype() != DType::Float32) return none();
  Results results{BatchNorm::create(c.b(), x, c.operand("weight"), c.operand("bias"), nullptr, nullptr, true,
                                    c.arguments().real("momentum"), eps, false),
                  nullptr, nullptr};
  if (c.node().result(1)->unused() && c.node().result(2)->unused()) return results;
  Ints dims;
  for (int64_t d = 0; d < x->rank(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  results[1] = MeanDim::create(c.b(), x, dims);
  Value* variance = VarCorrection::create(c.b(), x, dims, int64_t{0});
  results[2] = Rsqrt::create(c.b(), AddScalar::create(c.b(), variance, eps));
  return results;
}

/// Instance norm with running statistics is batch norm.
Result<Results> instanceNorm(Composite& c) {
  Value *mean = c.operand("running_mean"), *variance = c.operand("running_var");
  if (c.arguments().boolean("use_input_stats") || !mean || !variance) return none();
  return Results{BatchNorm::create(c.b(), c.operand("input"), c.operand("weight"), c.operand("bias"), mean,
                                   variance, false, c.arguments().real("momentum"), c.arguments().real("eps"),
                                   false)};
}

/// In evaluation the noise is not used and returned unchanged.
Result<Results> rrelu(Composite& c) {
  if (c.arguments().boolean("training")) return none();
  const double slope = (c.arguments().real("lower") + c.arguments().real("upper")) / 2;
  Value* result = LeakyRelu::create(c.b(), c.operand("self"), slope);
  return c.node().results().size() == 1 ? Results{result} : Results{result, c.operand("noise")};
}

Result<Results> nativeDropout(Composite& c) {
  if (c.arguments().boolean("train", true)) return none();
  return Results{c.operand("input"), nullptr};
}

Result<Results> msort(Composite& c) {
  Value* x = c.operand("self");
  if (x->rank() == 0) return Results{x};
  return Results{Sort::create(c.b(), x, int64_t{0}).node()->result(0)};
}

// Comparisons with several numbers
// ------------------------------------------------------------------------------------------

/// bucketize, searchsorted: counts the boundaries that precede a value; NaN follows all of them.
Result<Results> search(Composite& c) {
  const bool buckets = c.node().opName() == "aten.bucketize.Tensor";
  Value* sorted = c.operand(buckets ? "boundaries" : "sorted_sequence");
  Value* x = c.operand("self");
  const Arguments& a = c.arguments();
  if (c.operand("sorter") || sorted->rank() == 0 || sorted->dtype() != x->dtype()) return none();
  if (sorted->rank() != 1 && sorted->rank() != x->rank()) return none();
  const bool right = a.boolean("right") || a.text("side") == "right";
  if (sorted->rank() > 1) sorted = Unsqueeze::create(c.b(), sorted, int64_t{-2});
  Value* values = Unsqueeze::create(c.b(), x, int64_t{-1});
  Value* behind = right ? LtTensor::create(c.b(), values, sorted) : LeTensor::create(c.b(), values, sorted);
  Value* count = c.sum(LogicalNot::create(c.b(), behind), {-1}, false);
  return Results{c.converted(count, a.boolean("out_int32") ? DType::Int32 : DType::Int64)};
}

Result<Results> isIn(Composite& c) {
  Value *x = c.operand("elements"), *among = c.operand("test_elements");
  if (x->dtype() != among->dtype() || among->numElements() == 0) return none();
  Value* equal = EqTensor::create(c.b(), Unsqueeze::create(c.b(), x, int64_t{-1}), c.flat(among));
  Value* any = AnyDim::create(c.b(), equal, int64_t{-1});
  return Results{c.arguments().boolean("invert") ? LogicalNot::create(c.b(), any) : any};
}

/// Equal, or at a finite distance of at most atol + rtol |y|.
Result<Results> isClose(Composite& c) {
  Value *x = c.operand("self"), *y = c.operand("other");
  const Arguments& a = c.arguments();
  if (a.boolean("equal_nan") || x->dtype() != DType::Float32 || y->dtype() != DType::Float32) return none();
  Value* distance = Abs::create(c.b(), c.sub(x, y));
  Value* relative = MulScalar::create(c.b(), Abs::create(c.b(), y), a.real("rtol", 1e-5));
  Value* allowed = AddScalar::create(c.b(), relative, a.real("atol", 1e-8));
  Value* near = LogicalAnd::create(c.b(), Isfinite::create(c.b(), distance),
                                   LeTensor::create(c.b(), distance, allowed));
  return Results{LogicalOr::create(c.b(), EqTensor::create(c.b(), x, y), near)};
}

Result<Results> ldexp(Composite& c) {
  Value *x = c.operand("self"), *exponent = c.operand("other");
  if (x->dtype() != DType::Float32) return none();
  return Results{c.mul(x, PowScalar::create(c.b(), c.converted(exponent, DType::Float32), 2.0))};
}

// Bags of embeddings
// ------------------------------------------------------------------------------------------------------

/// The value as a tensor if it does not depend on an operand, like an arange.
std::optional<Tensor> known(const Value* value) {
  if (value->isConstant()) return value->constant();
  const ir::Node* node = value->producer();
  if (!node || !node->operands().empty() || !node->def().has(ir::kPure) || !canExecute(node->def()))
    return std::nullopt;
  ir::Graph graph;
  std::unordered_map<const Value*, Value*> mapping;
  auto copy = ir::cloneNode(*node, graph, mapping);
  if (!copy) return std::nullopt;
  graph.setOutputs({(*copy)->result()});
  auto result = execute(graph, {});
  if (!result) return std::nullopt;
  return std::move((*result)[0]);
}

/// The number of elements per bag if all bags have the same; otherwise 0.
int64_t commonBagSize(const Value* offsets, int64_t bags, int64_t elements) {
  const auto starts = known(offsets);
  if (!starts || bags == 0 || elements % bags != 0) return 0;
  const int64_t size = elements / bags;
  for (int64_t i = 0; i < bags; ++i) {
    if (starts->integerAt(i) != i * size) return 0;
  }
  return size;
}

/// 1 where an element belongs to a bag, [bags, elements, 1]: from its own start to the next one's.
Value* membership(Composite& c, Value* offsets, int64_t bags, int64_t elements, bool lastGiven) {
  offsets = c.converted(offsets, DType::Int64);
  Value* starts = c.reshape(c.slice(offsets, 0, 0, bags), {bags, 1});
  Value* end = c.b().constant(Tensor::from({1}, std::vector<int64_t>{elements}));
  Value* ends = c.slice(offsets, 0, 1, offsets->dim(0));
  if (!lastGiven) ends = Cat::create(c.b(), {ends, end});
  Value* places = c.numbered({1, elements});
  Value* inside = LogicalAnd::create(c.b(), GeTensor::create(c.b(), places, starts),
                                     LtTensor::create(c.b(), places, c.reshape(ends, {bags, 1})));
  return c.reshape(inside, {bags, elements, 1});
}

/// Sum, mean or maximum of the rows that each bag selects.
Result<Results> embeddingBag(Composite& c) {
  enum Mode : int64_t { kSum, kMean, kMax };
  Value *weight = c.operand("weight"), *indices = c.operand("indices"), *offsets = c.operand("offsets");
  Value* factors = c.operand("per_sample_weights");
  const int64_t mode = c.arguments().integer("mode"), padding = c.arguments().integer("padding_idx", -1);
  const bool lastGiven = c.arguments().boolean("include_last_offset");
  if (weight->rank() != 2 || indices->rank() != 1 || offsets->rank() != 1 ||
      weight->dtype() != DType::Float32)
    return none();
  const int64_t elements = indices->dim(0), bags = offsets->dim(0) - (lastGiven ? 1 : 0),
                width = weight->dim(1);
  if (elements == 0 || bags < 1 || (factors && mode != kSum)) return none();
  Value* rows = Embedding::create(c.b(), weight, indices);
  if (factors) rows = c.mul(rows, c.reshape(factors, {elements, 1}));
  const int64_t size = commonBagSize(offsets, bags, elements);
  Value* counts = nullptr;  // which rows count, [bags, size, 1]; null: all
  if (padding >= 0) {
    counts = NeScalar::create(c.b(), indices, padding);
    counts = c.reshape(counts, size > 0 ? Ints{bags, size, 1} : Ints{1, elements, 1});
  }
  rows = c.reshape(rows, size > 0 ? Ints{bags, size, width} : Ints{1, elements, width});
  if (size == 0) {
    Value* inside = membership(c, offsets, bags, elements, lastGiven);
    counts = counts ? LogicalAnd::create(c.b(), inside, counts) : inside;
  }
  if (!counts && mode == kMax) return Results{Amax::create(c.b(), rows, Ints{1})};
  if (!counts && mode == kMean) return Results{MeanDim::create(c.b(), rows, Ints{1})};
  if (!counts) return Results{c.sum(rows, {1}, false)};
  Value* zero = c.number(0, DType::Float32);
  Value* number = c.sum(c.converted(counts, DType::Float32), {1}, false);  // [bags, 1]
  if (mode == kMax) {
    // Rows that do not count are set to the lowest value; a bag without counting rows is zero.
    Value* lowest = Amin::create(c.b(), rows, Ints{0, 1, 2});
    Value* largest = Amax::create(c.b(), WhereSelf::create(c.b(), counts, rows, lowest), Ints{1});
    Value* filled = GtScalar::create(c.b(), number, 0.0);
    return Results{WhereSelf::create(c.b(), filled, largest, zero)};
  }
  Value* total = c.sum(WhereSelf::create(c.b(), counts, rows, zero), {1}, false);
  if (mode == kSum) return Results{total};
  return Results{DivTensor::create(c.b(), total, ClampMin::create(c.b(), number, 1.0))};
}

const std::map<std::string_view, Composition>& computing() {
  static const std::map<std::string_view, Composition> table{
      {"aten._embedding_bag.default", embeddingBag},
      {"aten._embedding_bag_forward_only.default", embeddingBag},
      {"aten._native_batch_norm_legit.default", evaluatedBatchNorm},
      {"aten._native_batch_norm_legit.no_stats", batchStatisticsNorm},
      {"aten._native_batch_norm_legit_functional.default", evaluatedBatchNorm},
      {"aten._trilinear.default", trilinear},
      {"aten._weight_norm.default", weightNorm},
      {"aten._weight_norm_interface.default", weightNorm},
      {"aten.bilinear.default", bilinear},
      {"aten.bucketize.Tensor", search},
      {"aten.chain_matmul.default", matrixChain},
      {"aten.cross.default", cross},
      {"aten.cumulative_trapezoid.dx", trapezoid},
      {"aten.diff.default", diff},
      {"aten.dist.default", distance},
      {"aten.embedding_bag.default", embeddingBag},
      {"aten.embedding_bag.padding_idx", embeddingBag},
      {"aten.frobenius_norm.dim", vectorNorm},
      {"aten.ger.default", ger},
      {"aten.inner.default", inner},
      {"aten.instance_norm.default", instanceNorm},
      {"aten.isclose.default", isClose},
      {"aten.isin.Tensor_Tensor", isIn},
      {"aten.kron.default", kron},
      {"aten.l1_loss.default", elementLoss},
      {"aten.ldexp.Tensor", ldexp},
      {"aten.linalg_cross.default", cross},
      {"aten.linalg_matrix_norm.str_ord", vectorNorm},
      {"aten.linalg_matrix_power.default", matrixPower},
      {"aten.linalg_multi_dot.default", matrixChain},
      {"aten.linalg_norm.default", vectorNorm},
      {"aten.linalg_norm.ord_str", vectorNorm},
      {"aten.linear.default", linear},
      {"aten.matrix_power.default", matrixPower},
      {"aten.mse_loss.default", elementLoss},
      {"aten.msort.default", msort},
      {"aten.native_batch_norm.default", evaluatedBatchNorm},
      {"aten.native_dropout.default", nativeDropout},
      {"aten.rrelu.default", rrelu},
      {"aten.rrelu_with_noise.default", rrelu},
      {"aten.rrelu_with_noise_functional.default", rrelu},
      {"aten.searchsorted.Tensor", search},
      {"aten.tensordot.default", tensordot},
      {"aten.trapezoid.dx", trapezoid},
      {"aten.vdot.default", vdot},
  };
  return table;
}

Composition compositionOf(std::string_view op) {
  for (const auto* table :
       {&computing(), &movingComposites(), &windowComposites(), &signalWindows(), &fakeQuantization()}) {
    if (const auto known = table->find(op); known != table->end()) return known->second;
  }
  return nullptr;
}

/// Whether `results` can replace the node's results.
bool fits(const ir::Node& node, const Results& results) {
  if (results.empty() || !results[0]) return false;
  for (size_t i = 0; i < node.results().size(); ++i) {
    const Value* made = i < results.size() ? results[i] : nullptr;
    if (!made && !node.result(i)->unused()) return false;
    if (made && made->type != node.result(i)->type) return false;
  }
  return true;
}

}  // namespace

Status replaceComposites(ir::Graph& graph) {
  bool found = false;
  for (ir::Node* node : graph.nodes()) {
    for (const auto& region : node->regions()) {
      if (region) CARINA_RETURN_IF_ERROR(replaceComposites(*region));
    }
    const Composition composition = compositionOf(node->opName());
    if (!composition) continue;
    found = true;
    Composite composite(node);
    auto results = composition(composite);
    if (!results) return std::move(results).error().at(node->where());
    if (!fits(*node, *results)) continue;
    for (size_t i = 0; i < node->results().size(); ++i) {
      Value* made = i < results->size() ? (*results)[i] : nullptr;
      if (!made) continue;
      if (made->name.empty() && made->producer()) std::swap(made->name, node->result(i)->name);
      graph.replaceAllUses(node->result(i), made);
    }
    graph.erase(node);
  }
  if (found) graph.eraseDeadNodes();  // of composites that are kept
  return {};
}

}  // namespace carina::decompose
