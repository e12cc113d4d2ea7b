// SPDX-License-Identifier: Apache-2.0
// GATHER and SCATTER. Ethos-U85 has indexed transfers. Ethos-U55 and U65 copy rows with constant indices, and
// select others by matrix products with one-hot rows, which are exact.
#include <algorithm>
#include <map>

#include "compiler/legalize/legalizer.hpp"

namespace carina::compiler {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;
using npu_ir::Piece;
using npu_ir::PoolMode;

namespace {

/// Rows of `from` that are contiguous there and in the result.
struct CopiedRows {
  ir::Value* from;
  int64_t source, target, count;
};

/// Adds one row; targets ascend by one.
void addRow(std::vector<CopiedRows>& runs, ir::Value* from, int64_t source, int64_t target) {
  if (!runs.empty() && runs.back().from == from && runs.back().source + runs.back().count == source)
    ++runs.back().count;
  else
    runs.push_back({from, source, target, 1});
}

std::vector<Piece> copyRows(ir::Builder& builder, const std::vector<CopiedRows>& runs, int64_t columns) {
  std::vector<Piece> pieces;
  for (const CopiedRows& run : runs) {
    for (Piece& piece : emitCopies(builder, {run.from,
                                             {run.count, columns},
                                             run.source * columns,
                                             {columns, 1},
                                             run.target * columns,
                                             {columns, 1}}))
      pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

Status Legalizer::lowerGather(ir::Node* node) {
  if (!npu().indexedDma) return gatherRows(node);
  CARINA_TRY(ir::Value * values, get(node->operand(0)));   // [N, K, C]
  CARINA_TRY(ir::Value * indices, get(node->operand(1)));  // [N, W]
  const int64_t rows = values->dim(1), columns = values->dim(2), count = indices->dim(1);
  const Shape& shape = node->result()->shape();
  std::vector<Piece> pieces;
  for (int64_t n = 0; n < values->dim(0); ++n) {
    ir::Value* table = npu_ir::createView(builder_, values, values->dtype(), {rows, columns},
                                          n * rows * columns, {columns, 1});
    ir::Value* index = npu_ir::createView(builder_, indices, indices->dtype(), {count}, n * count, {1});
    ir::NodeSpec spec;
    spec.def = &npu_ir::Gather::def();
    spec.operands = {{table}, {index}};
    spec.types = {{values->dtype(), {count, columns}}};
    pieces.push_back({builder_.create(std::move(spec))->result(), n * count * columns, {columns, 1}});
  }
  define(node->result(), pieces.size() == 1 ? pieces[0].value
                                            : npu_ir::createJoin(builder_, pieces, {values->dtype(), shape}));
  return {};
}

Status Legalizer::lowerScatter(ir::Node* node) {
  if (!npu().indexedDma) return scatterRows(node);
  CARINA_TRY(ir::Value * values, get(node->operand(0)));   // [N, K, C]
  CARINA_TRY(ir::Value * indices, get(node->operand(1)));  // [N, W]
  CARINA_TRY(ir::Value * updates, get(node->operand(2)));  // [N, W, C]
  ir::NodeSpec spec;
  spec.def = &npu_ir::Scatter::def();
  spec.operands = {{values}, {indices}, {updates}};
  spec.types = {values->type};
  define(node->result(), builder_.create(std::move(spec))->result());
  return {};
}

Result<ir::Value*> Legalizer::oneHot(ir::Value* indices, int64_t rows) {
  const int64_t batch = indices->dim(0), picks = indices->dim(1);
  if (rows > kMaxAxis || batch * picks > kMaxAxis) {
    return fail(Code::HardwareLimit, "{} indices into {} rows exceed the largest axis, {}", batch * picks,
                rows, kMaxAxis)
        .withRemedy("split the table");
  }
  if (batch * picks == 1) {
    Tensor numbers = Tensor::zeros(DType::Int32, {rows});
    for (int64_t row = 0; row < rows; ++row) numbers.setIntegerAt(row, row);
    CARINA_TRY(ir::Value * result,
               elementwise(ElementwiseMode::SUB, constant(std::move(numbers)),
                           npu_ir::createReshape(builder_, indices, {1}), DType::Int8, testZero(true)));
    return npu_ir::createReshape(builder_, result, {1, 1, rows});
  }
  // A pointwise convolution of one channel gives index - row for each row; saturated, only one of them is
  // zero. Few rows fit 8 bits, others 16, the upper half of 65536 after a shift of the origin.
  const bool narrow = rows <= 128;
  const int64_t origin = rows > 32768 ? 32768 : 0;
  CARINA_TRY(ir::Value * index,
             elementwise(ElementwiseMode::SUB, indices, scalarConstant(DType::Int32, origin),
                         narrow ? DType::Int8 : DType::Int16));
  Tensor weight = Tensor::zeros(DType::Int8, {rows, 1, 1, 1}), bias = Tensor::zeros(DType::Int32, {rows});
  for (int64_t row = 0; row < rows; ++row) {
    weight.setIntegerAt(row, 1);
    bias.setIntegerAt(row, origin - row);
  }
  ir::Value* result = npu_ir::createConv(
      builder_, npu_ir::createReshape(builder_, index, {1, batch * picks, 1}), constant(std::move(weight)),
      constant(std::move(bias)), {}, {0}, testZero(true), DType::Int8);
  return npu_ir::createReshape(builder_, result, {batch, picks, rows});
}

Result<ir::Value*> Legalizer::chosenRows(ir::Value* which, ir::Value* rows) {
  const int64_t batch = which->dim(0), count = which->dim(1), depth = which->dim(2), width = rows->dim(2);
  if (!prefersCodes(batch, count, depth, width))
    return rowProducts({which}, {transposed(rows, {0, 2, 1})}, DType::Int8);
  std::vector<ir::Node*> operations;  // nothing is fused into them
  std::vector<Piece> pieces;
  for (int64_t n = 0; n < batch; ++n) {
    const RightMatrix right{rows, n * depth * width, width, 1, 0};
    CARINA_TRY(ir::Value * part,
               codedProduct({npu_ir::createSlice(builder_, which, {n, 0, 0}, {1, count, depth})}, right,
                            width, DType::Int8, operations));
    pieces.push_back({part, n * count * width, {count * width, width, 1}});
  }
  return pieces.size() == 1 ? pieces[0].value
                            : npu_ir::createJoin(builder_, pieces, {DType::Int8, {batch, count, width}});
}

Status Legalizer::gatherRows(ir::Node* node) {
  CARINA_TRY(ir::Value * values, get(node->operand(0)));   // [N, K, C]
  CARINA_TRY(ir::Value * indices, get(node->operand(1)));  // [N, W]
  const int64_t batch = values->dim(0), rows = values->dim(1), columns = values->dim(2),
                picks = indices->dim(1);
  const Shape& shape = node->result()->shape();
  const DType type = values->dtype();
  if (indices->isConstant()) {
    std::vector<CopiedRows> runs;
    for (int64_t i = 0; i < batch * picks; ++i) {
      const int64_t index = indices->constant().integerAt(i);
      if (index < 0 || index >= rows)
        return fail(Code::NoResult, "index {} is outside of {} rows", index, rows)
            .withRemedy("use indices within the table");
      addRow(runs, values, i / picks * rows + index, i);
    }
    if (static_cast<int64_t>(runs.size()) <= kMaxCopies) {
      define(node->result(), npu_ir::createJoin(builder_, copyRows(builder_, runs, columns), {type, shape}));
      return {};
    }
  }
  CARINA_TRY(ir::Value * which, oneHot(indices, rows));
  const int64_t width = columns * dtypeSize(type);
  const Shape table{batch, rows, width};
  ir::Value* picked = nullptr;
  if (values->isConstant()) {
    // The table is the kernel of a pointwise convolution.
    std::vector<Piece> pieces;
    std::vector<ir::Node*> operations;  // nothing is fused into them
    const Tensor& numbers = values->constant();
    for (int64_t n = 0; n < batch; ++n) {
      Convolution conv;
      conv.ifm = npu_ir::createSlice(builder_, which, {n, 0, 0}, {1, picks, rows});
      conv.weight = Tensor::zeros(DType::Int8, {width, 1, 1, rows});
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < width; ++c) {
          const int64_t size = dtypeSize(type);
          const int64_t number = numbers.integerAt((n * rows + row) * columns + c / size);
          conv.weight.setIntegerAt(c * rows + row, static_cast<int8_t>(number >> (8 * (c % size))));
        }
      }
      conv.bias = Tensor::zeros(DType::Int32, {width});
      conv.type = DType::Int8;
      CARINA_TRY(ir::Value * part, convolve(std::move(conv), operations));
      pieces.push_back({part, n * picks * width, {picks * width, width, 1}});
    }
    picked = pieces.size() == 1 ? pieces[0].value
                                : npu_ir::createJoin(builder_, pieces, {DType::Int8, {batch, picks, width}});
  } else {
    ir::Value* bytes = npu_ir::createReshape(builder_, bytesOf(values), table);
    CARINA_TRY(picked, chosenRows(which, bytes));
  }
  define(node->result(), fromBytes(picked, type, shape));
  return {};
}

Result<ir::Value*> Legalizer::replacedRow(ir::Value* rows, ir::Value* row, ir::Value* hits, ir::Value* none) {
  const int64_t width = rows->dim(2), smallest = integerMin(DType::Int8);
  Convolution conv;  // repeats the hits for all bytes of a row
  conv.ifm = hits;
  conv.weight = Tensor::zeros(DType::Int8, {width, 1, 1, 1});
  conv.bias = Tensor::zeros(DType::Int32, {width});
  for (int64_t c = 0; c < width; ++c) conv.weight.setIntegerAt(c, 1);
  conv.type = DType::Int8;
  std::vector<ir::Node*> operations;  // nothing is fused into them
  CARINA_TRY(ir::Value * wide, convolve(std::move(conv), operations));
  // Counted from the smallest number, either side is 0 where the other one is meant.
  OutputStage stage;
  stage.zeroPoint = smallest;
  CARINA_TRY(ir::Value * kept,
             elementwise(ElementwiseMode::MUL, {rows, smallest}, {none}, stage, DType::Int8));
  CARINA_TRY(ir::Value * put, elementwise(ElementwiseMode::MUL, {wide}, {row, smallest}, stage, DType::Int8));
  return elementwise(ElementwiseMode::MAX, kept, put, DType::Int8);
}

Status Legalizer::scatterRows(ir::Node* node) {
  CARINA_TRY(ir::Value * values, get(node->operand(0)));   // [N, K, C]
  CARINA_TRY(ir::Value * indices, get(node->operand(1)));  // [N, W], no row twice
  CARINA_TRY(ir::Value * updates, get(node->operand(2)));  // [N, W, C]
  const int64_t batch = values->dim(0), rows = values->dim(1), columns = values->dim(2),
                count = indices->dim(1);
  const Shape& shape = node->result()->shape();
  const DType type = values->dtype();
  if (indices->isConstant()) {
    std::map<int64_t, int64_t> replaced;  // row of the result: row of the updates
    for (int64_t i = 0; i < batch * count; ++i) {
      const int64_t index = indices->constant().integerAt(i);
      if (index < 0 || index >= rows)
        return fail(Code::NoResult, "index {} is outside of {} rows", index, rows)
            .withRemedy("use indices within the table");
      replaced[i / count * rows + index] = i;
    }
    std::vector<CopiedRows> runs;
    for (int64_t row = 0; row < batch * rows; ++row) {
      const auto update = replaced.find(row);
      const bool kept = update == replaced.end();
      addRow(runs, kept ? values : updates, kept ? row : update->second, row);
    }
    if (static_cast<int64_t>(runs.size()) <= kMaxCopies) {
      define(node->result(), npu_ir::createJoin(builder_, copyRows(builder_, runs, columns), {type, shape}));
      return {};
    }
  }
  // values where no index refers to the row, plus the updates distributed over the rows.
  CARINA_TRY(ir::Value * hits, oneHot(indices, rows));
  hits = transposed(hits, {0, 2, 1});  // [N, K, W]
  const int64_t width = columns * dtypeSize(type);
  ir::Value* any = npu_ir::createPool(builder_, hits, PoolMode::REDUCE_SUM, {}, {}, DType::Int8);
  CARINA_TRY(ir::Value * none,
             elementwise(ElementwiseMode::SUB, scalarConstant(DType::Int8, 1), any, DType::Int8));
  ir::Value* old = npu_ir::createReshape(builder_, bytesOf(values), {batch, rows, width});
  ir::Value* fresh = npu_ir::createReshape(builder_, bytesOf(updates), {batch, count, width});
  if (count == 1) {
    CARINA_TRY(ir::Value * result, replacedRow(old, fresh, hits, none));
    define(node->result(), fromBytes(result, type, shape));
    return {};
  }
  CARINA_TRY(ir::Value * kept, elementwise(ElementwiseMode::MUL, old, none, DType::Int8));
  CARINA_TRY(ir::Value * spread, chosenRows(hits, fresh));
  CARINA_TRY(ir::Value * result, elementwise(ElementwiseMode::ADD, kept, spread, DType::Int8));
  define(node->result(), fromBytes(result, type, shape));
  return {};
}

}  // namespace carina::compiler
