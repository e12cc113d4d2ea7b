// SPDX-License-Identifier: Apache-2.0
// Arithmetic on 32-bit codes, inside operators of networks that come with int16 codes: sums, products and
// functions accurate to about 24 bits, where 16-bit intermediate codes would make the result wrong by many
// codes.
//
// Codes have 28 bits and a sign, and known limits: nothing overflows, whatever the inputs of the network.
#pragma once

#include <functional>

#include "lower/lowering.hpp"

namespace carina::lower {

/// real = scale * code, no zero point.
struct Wide {
  StoredTensor data;  // int32
  double scale = 1;
  Interval within;

  double reach() const { return scale * static_cast<double>(within.magnitude()); }
};

/// Whether a quantize node with these codes produces wide ones.
bool isWide(const Codes& codes);
/// Whether the operator reads or produces such codes, and has a rule for them.
bool isWide(const Lowering& lowering, const ir::Node& node);
/// Null if there is none.
Rule findWideRule(const ir::OpDef& def);

/// Converts values with 8, 16 or 32-bit codes to 32-bit codes.
Result<Wide> wideForm(Lowering& lowering, const QuantizedValue& real);
Result<Wide> wideOperand(Lowering& lowering, const ir::Value* value);
/// Limits the codes; `already`: their producer has done so.
void keepWithin(Emitter& emit, QuantizedValue& real, const Interval& limits, bool already);
/// The codes that a quantize node requires.
Result<StoredTensor> wideCodes(Lowering& lowering, const QuantizedValue& real, const Codes& codes);
/// Rescales 48-bit sums to 16-bit codes if the 15-bit multipliers that RESCALE has for such sums are too
/// coarse: first to 32-bit values, then by 31-bit factors. Null if a single RESCALE is as accurate.
Result<ir::Value*> rescaledExactly(Emitter& emit, ir::Value* sums, const Interval& within,
                                   std::span<const double> factors);
/// Defines the result of an operator; a quantize node must follow.
void defineWide(Lowering& lowering, const ir::Value* result, Wide wide);

/// The same values in other units, in which they must fit 31 bits.
Wide inUnits(Emitter& emit, const Wide& x, double unit);
/// The smallest power of two that, used as a unit, gives values up to `reach` `bits` bits.
double unitFor(double reach, int bits);

using Function = std::function<double(double)>;

/// Evaluates a smooth function to about 2^-22 of its range, with parabolas at 511 points. The result has 28
/// bits.
Result<Wide> wideFunction(Emitter& emit, const Wide& x, const Function& function);

// Rules
Status lowerWideMatmul(Lowering& lowering, const ir::Node& node);
Status lowerWideLinear(Lowering& lowering, const ir::Node& node);
Status lowerWideNorm(Lowering& lowering, const ir::Node& node);

}  // namespace carina::lower
