// SPDX-License-Identifier: Apache-2.0
// The table of lowering rules and helpers that several of them use.
#pragma once

#include <unordered_map>

#include "decompose/dims.hpp"
#include "lower/lowering.hpp"

namespace carina::lower {

using decompose::wrapped;
using decompose::wrappedDims;

using Rules = std::unordered_map<const ir::OpDef*, Rule>;

void addQuantizeRules(Rules& rules);     // quantize, dequantize, clamps
void addPointwiseRules(Rules& rules);    // add, mul, maximum, comparisons, where
void addDivisionRules(Rules& rules);     // integer quotients and remainders
void addFunctionRules(Rules& rules);     // one operand, any function: TABLE
void addWholeNumberRules(Rules& rules);  // floor, ceil, round, trunc, remainders by a number
void addConvolutionRules(Rules& rules);  // convolutions, linear
void addPoolRules(Rules& rules);
void addReduceRules(Rules& rules);
void addNormRules(Rules& rules);  // layer and RMS norm
void addMatmulRules(Rules& rules);
void addViewRules(Rules& rules);   // view, permute, expand, ...
void addMoveRules(Rules& rules);   // cat, slice, pad, flip
void addIndexRules(Rules& rules);  // gather, embedding, index_put
void addResizeRules(Rules& rules);
void addControlFlowRules(Rules& rules);  // conditionals, loops, loops over slices

/// Whether a node repeats a tensor along dimensions: expand, repeat, ...
bool isRepeat(const ir::Node& node);

/// Operands as codes of one scale and zero point: those that the quantize node after `result` requires,
/// otherwise the coarsest of the operands. Operands that already have them are not changed.
struct SameCodes {
  std::vector<StoredTensor> data;
  Codes codes;
};
Result<SameCodes> sameCodes(Lowering& lowering, std::span<ir::Value* const> operands,
                            const ir::Value* result);

/// Two quantized operands of one type, aligned, ready to be converted to int32.
struct Pair {
  std::array<QuantizedValue, 2> reals;
  Lowering::Aligned aligned;
};
Result<Pair> quantizedPair(Lowering& lowering, const ir::Node& node);
/// Both operands as int32 in units of `unit`.
Result<std::array<ir::Value*, 2>> inUnits(Lowering& lowering, const Pair& pair, double unit);

/// floor(x / y) of floats, or x / y truncated towards zero.
Status lowerWholeQuotient(Lowering& lowering, const ir::Node& node, bool cut);

/// Defines a float result of arithmetic with one scale: int32 (or int48) values that a quantize node will
/// convert.
void defineAccumulator(Lowering& lowering, const ir::Value* result, StoredTensor data, double scale,
                       std::optional<Interval> within = {});

/// A function of one float value, evaluated in double at every code.
Status defineFunction(Lowering& lowering, const ir::Node& node, std::function<double(double)> function);

}  // namespace carina::lower
