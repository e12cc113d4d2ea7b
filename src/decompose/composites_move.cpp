// SPDX-License-Identifier: Apache-2.0
// Composites that move, select or replace elements.
#include <algorithm>

#include "decompose/composite.hpp"

namespace carina::decompose::composite {

using namespace aten;
namespace {

// Elements by position
// ------------------------------------------------------------------------------------------------

Result<Results> takeAlongDim(Composite& c) {
  Value *x = c.operand("self"), *index = c.operand("indices");
  if (!c.arguments().given("dim"))
    return Results{Gather::create(c.b(), c.flat(x), c.flat(index), int64_t{0})};
  CARINA_TRY(const int64_t dim, wrapDim(c.arguments().integer("dim"), x->rank()));
  if (x->rank() == 0 || x->rank() != index->rank()) return none();
  Shape values = x->shape(), places = index->shape();
  const auto d = static_cast<size_t>(dim);
  values[d] = places[d] = 1;
  const auto joint = broadcastShapes(values, places);
  if (!joint) return none();
  values = places = *joint;
  values[d] = x->dim(dim), places[d] = index->dim(dim);
  return Results{Gather::create(c.b(), c.expand(x, values), c.expand(index, places), dim)};
}

/// `self` with the elements at row-major indices `places` replaced.
Value* withReplaced(Composite& c, Value* self, Value* places, Value* source, bool accumulate) {
  Value* flat = IndexPut::create(c.b(), c.flat(self), {c.flat(places)}, c.flat(source), accumulate);
  return c.reshape(flat, self->shape());
}

Result<Results> put(Composite& c) {
  return Results{withReplaced(c, c.operand("self"), c.operand("index"), c.operand("source"),
                              c.arguments().boolean("accumulate"))};
}

Result<Results> diagonalScatter(Composite& c) {
  Value* self = c.operand("self");
  const Arguments& a = c.arguments();
  Value* places = Diagonal::create(c.b(), c.numbered(self->shape()), a.integer("offset"), a.integer("dim1"),
                                   a.integer("dim2", 1));
  return Results{withReplaced(c, self, places, c.operand("src"), false)};
}

Result<Results> asStridedScatter(Composite& c) {
  Value* self = c.operand("self");
  const Arguments& a = c.arguments();
  Value* places = AsStrided::create(c.b(), c.numbered(self->shape()), a.ints("size"), a.ints("stride"),
                                    a.integer("storage_offset"));
  return Results{withReplaced(c, self, places, c.operand("src"), false)};
}

/// scatter with a reduction is scatter_reduce under an older name.
Result<Results> scatterReduction(Composite& c) {
  const std::string reduce = c.arguments().text("reduce");
  Value *self = c.operand("self"), *index = c.operand("index"), *source = c.operand("src");
  if (reduce != "add" && reduce != "multiply") return none();
  if (!source) {
    source = c.expand(c.number(c.arguments().real("value"), self->dtype()), index->shape());
  }
  return Results{ScatterReduceTwo::create(c.b(), self, index, source, c.arguments().integer("dim"),
                                          reduce == "add" ? "sum" : "prod")};
}

// Movements under their numpy names
// -----------------------------------------------------------------------------------------

/// The tensor with at least `rank` dimensions, with new ones placed like in atleast_Nd.
Value* atLeast(Composite& c, Value* x, int64_t rank) {
  Ints shape = x->shape();
  if (rank == 3 && shape.size() < 3) {
    if (shape.size() < 2) shape.insert(shape.begin(), 1);
    if (shape.size() < 2) shape.push_back(1);
    shape.push_back(1);
  }
  while (static_cast<int64_t>(shape.size()) < rank) shape.insert(shape.begin(), 1);
  return shape == Ints(x->shape()) ? x : c.reshape(x, shape);
}

template <int64_t kRank>
Result<Results> atLeastOne(Composite& c) {
  return Results{atLeast(c, c.operand("self"), kRank)};
}

/// hstack, vstack, dstack, column_stack: concatenated along the dimension that each of them implies.
Result<Results> joined(Composite& c) {
  const std::string_view name = c.node().opName();
  const bool columns = name == "aten.column_stack.default", depth = name == "aten.dstack.default";
  const bool rows = name == "aten.vstack.default";
  std::vector<Value*> parts;
  for (Value* part : c.node().operandGroup(0)) {
    if (columns)
      parts.push_back(part->rank() < 2 ? c.reshape(part, {part->numElements(), 1}) : part);
    else
      parts.push_back(atLeast(c, part, depth ? 3 : rows ? 2 : 1));
  }
  if (parts.empty()) return none();
  const int64_t dim = rows || (!columns && !depth && parts[0]->rank() == 1) ? 0 : depth ? 2 : 1;
  return Results{Cat::create(c.b(), parts, dim)};
}

/// hsplit, vsplit, dsplit by a number of parts or by positions: the results determine the lengths.
Result<Results> split(Composite& c) {
  const std::string_view name = c.node().opName();
  Value* x = c.operand("self");
  int64_t dim = x->rank() == 1 ? 0 : 1;
  if (name.starts_with("aten.vsplit")) dim = 0;
  if (name.starts_with("aten.dsplit")) dim = 2;
  if (x->rank() <= dim) return none();
  Results parts;
  int64_t from = 0;
  for (const Value* part : c.node().results()) {
    parts.push_back(c.slice(x, dim, from, from + part->dim(dim)));
    from += part->dim(dim);
  }
  return from == x->dim(dim) ? Result<Results>(parts) : none();
}

Result<Results> mirrored(Composite& c) {
  const int64_t dim = c.node().opName() == "aten.fliplr.default" ? 1 : 0;
  return Results{Flip::create(c.b(), c.operand("self"), Ints{dim})};
}

Result<Results> rotated(Composite& c) {
  const Ints dims = c.arguments().ints("dims");
  Value* x = c.operand("self");
  const int64_t turns = ((c.arguments().integer("k", 1) % 4) + 4) % 4;
  if (dims.size() != 2) return none();
  const auto flipped = [&](Value* v, Ints which) { return Flip::create(c.b(), v, std::move(which)); };
  const auto turned = [&](Value* v) { return TransposeInt::create(c.b(), v, dims[0], dims[1]); };
  if (turns == 1) return Results{turned(flipped(x, {dims[1]}))};
  if (turns == 2) return Results{flipped(x, dims)};
  if (turns == 3) return Results{flipped(turned(x), {dims[1]})};
  return Results{x};
}

Result<Results> swapped(Composite& c) {
  return Results{TransposeInt::create(c.b(), c.operand("self"), c.arguments().integer("dim0"),
                                      c.arguments().integer("dim1"))};
}

Result<Results> raveled(Composite& c) {
  return Results{c.flat(c.operand("self"))};
}

/// A matrix of zeros with a vector on one of its diagonals.
Value* withDiagonal(Composite& c, Value* vector, int64_t offset) {
  const int64_t size = vector->numElements() + std::abs(offset);
  Value* places = Diagonal::create(c.b(), c.numbered({size, size}), offset);
  Value* zeros = c.b().constant(Tensor::zeros(vector->dtype(), {size, size}));
  return withReplaced(c, zeros, places, vector, false);
}

Result<Results> diag(Composite& c) {
  Value* x = c.operand("self");
  const int64_t offset = c.arguments().integer(c.arguments().has("offset") ? "offset" : "diagonal");
  if (c.node().opName() == "aten.diagflat.default") return Results{withDiagonal(c, c.flat(x), offset)};
  if (x->rank() == 1) return Results{withDiagonal(c, x, offset)};
  return Results{Diagonal::create(c.b(), x, offset)};
}

/// Puts the last dimension on a diagonal of two new ones, at the given offset between row and column.
Result<Results> diagEmbed(Composite& c) {
  Value* x = c.operand("self");
  const int64_t offset = c.arguments().integer("offset"), rank = x->rank() + 1;
  CARINA_TRY(const int64_t first, wrapDim(c.arguments().integer("dim1", -2), rank));
  CARINA_TRY(const int64_t second, wrapDim(c.arguments().integer("dim2", -1), rank));
  if (x->rank() == 0 || first == second) return none();
  const int64_t length = x->dim(x->rank() - 1), size = length + std::abs(offset);
  std::vector<uint8_t> on(static_cast<size_t>(size * size), 0);
  std::vector<int64_t> which(static_cast<size_t>(size), 0);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t row = i + (offset < 0 ? -offset : 0), column = i + (offset > 0 ? offset : 0);
    on[static_cast<size_t>(row * size + column)] = 1;
    which[static_cast<size_t>(column)] = i;
  }
  Tensor mask = Tensor::zeros(DType::Bool, {size, size});
  std::copy(on.begin(), on.end(), mask.mutableAs<uint8_t>().begin());
  // Every column holds its own element in all rows; the mask keeps one of them.
  Value* columns = IndexSelect::create(c.b(), x, c.b().constant(Tensor::from({size}, which)), int64_t{-1});
  columns = Unsqueeze::create(c.b(), columns, int64_t{-2});
  Value* zero = c.b().constant(Tensor::zeros(x->dtype(), {}));
  Value* result = WhereSelf::create(c.b(), c.b().constant(mask), columns, zero);
  return Results{MovedimIntlist::create(c.b(), result, Ints{rank - 2, rank - 1}, Ints{first, second})};
}

/// Blocks along the diagonal: each is padded to the full width, then they are stacked.
Result<Results> blockDiag(Composite& c) {
  std::vector<Value*> blocks, rows;
  int64_t width = 0, before = 0;
  for (Value* block : c.node().operandGroup(0)) {
    if (block->rank() > 2) return none();
    blocks.push_back(atLeast(c, block, 2));
    width += blocks.back()->dim(1);
  }
  for (Value* block : blocks) {
    const int64_t columns = block->dim(1);
    rows.push_back(ConstantPadNd::create(c.b(), block, Ints{before, width - before - columns}, 0.0));
    before += columns;
  }
  if (rows.empty()) return none();
  return Results{Cat::create(c.b(), rows)};
}

/// A vector along one dimension, repeated along the others.
Value* gridOf(Composite& c, Value* vector, size_t dim, const Shape& shape) {
  Ints along(shape.size(), 1);
  along[dim] = vector->numElements();
  return c.expand(c.reshape(vector, along), shape);
}

Result<Results> meshgrid(Composite& c) {
  const auto vectors = c.node().operandGroup(0);
  const bool columnsFirst = c.arguments().text("indexing", "ij") == "xy" && vectors.size() > 1;
  Shape shape;
  for (const Value* vector : vectors) shape.push_back(vector->numElements());
  if (columnsFirst) std::swap(shape[0], shape[1]);
  Results results;
  for (size_t i = 0; i < vectors.size(); ++i)
    results.push_back(gridOf(c, vectors[i], columnsFirst && i < 2 ? 1 - i : i, shape));
  return results;
}

Result<Results> cartesianProduct(Composite& c) {
  const auto vectors = c.node().operandGroup(0);
  if (vectors.size() < 2) return none();
  Shape shape;
  for (const Value* vector : vectors) shape.push_back(vector->numElements());
  std::vector<Value*> columns;
  for (size_t i = 0; i < vectors.size(); ++i)
    columns.push_back(c.reshape(gridOf(c, vectors[i], i, shape), {numElements(shape), 1}));
  return Results{Cat::create(c.b(), columns, int64_t{1})};
}

/// Only the operand's shape matters, not its values.
Result<Results> filled(Composite& c) {
  Value* x = c.operand("self");
  if (Value* value = c.operand("value")) return Results{c.expand(c.converted(value, x->dtype()), x->shape())};
  return Results{c.expand(c.number(c.arguments().real("value"), x->dtype()), x->shape())};
}

/// If negative padding removes the entire tensor, only the value remains.
Result<Results> padOfNothing(Composite& c) {
  const Value* x = c.operand("self");
  const Ints pad = c.arguments().ints("pad");
  const bool constant = !c.arguments().has("mode") || c.arguments().text("mode", "constant") == "constant";
  bool nothing = false;
  for (size_t i = 0; constant && i + 1 < pad.size(); i += 2) {
    const int64_t kept = x->dim(x->rank() - 1 - static_cast<int64_t>(i / 2)) + std::min<int64_t>(pad[i], 0) +
                         std::min<int64_t>(pad[i + 1], 0);
    nothing |= kept <= 0;
  }
  if (!nothing) return none();
  return Results{c.expand(c.number(c.arguments().real("value"), x->dtype()), c.node().result()->shape())};
}

Result<Results> zeroed(Composite& c) {
  Value* x = c.operand("self");
  return Results{c.expand(c.number(0, x->dtype()), x->shape())};
}

Result<Results> broadcastTensors(Composite& c) {
  Results results;
  for (size_t i = 0; i < c.node().results().size(); ++i)
    results.push_back(c.expand(c.node().operandGroup(0)[i], c.node().result(i)->shape()));
  return results;
}

}  // namespace

const std::map<std::string_view, Composition>& movingComposites() {
  static const std::map<std::string_view, Composition> table{
      {"aten.as_strided_scatter.default", asStridedScatter},
      {"aten.atleast_1d.default", atLeastOne<1>},
      {"aten.atleast_2d.default", atLeastOne<2>},
      {"aten.atleast_3d.default", atLeastOne<3>},
      {"aten.block_diag.default", blockDiag},
      {"aten.broadcast_tensors.default", broadcastTensors},
      {"aten.cartesian_prod.default", cartesianProduct},
      {"aten.column_stack.default", joined},
      {"aten.diag.default", diag},
      {"aten.diag_embed.default", diagEmbed},
      {"aten.diagflat.default", diag},
      {"aten.diagonal_scatter.default", diagonalScatter},
      {"aten.constant_pad_nd.default", padOfNothing},
      {"aten.dsplit.array", split},
      {"aten.dsplit.int", split},
      {"aten.dstack.default", joined},
      {"aten.fill.Scalar", filled},
      {"aten.fill.Tensor", filled},
      {"aten.fliplr.default", mirrored},
      {"aten.flipud.default", mirrored},
      {"aten.hsplit.array", split},
      {"aten.hsplit.int", split},
      {"aten.hstack.default", joined},
      {"aten.meshgrid.default", meshgrid},
      {"aten.meshgrid.indexing", meshgrid},
      {"aten.pad.default", padOfNothing},
      {"aten.put.default", put},
      {"aten.ravel.default", raveled},
      {"aten.rot90.default", rotated},
      {"aten.scatter.reduce", scatterReduction},
      {"aten.scatter.value_reduce", scatterReduction},
      {"aten.swapdims.default", swapped},
      {"aten.take_along_dim.default", takeAlongDim},
      {"aten.vsplit.array", split},
      {"aten.vsplit.int", split},
      {"aten.vstack.default", joined},
      {"aten.zero.default", zeroed},
  };
  return table;
}

}  // namespace carina::decompose::composite
