// SPDX-License-Identifier: Apache-2.0
// Arithmetic on codes of 32 bits, inside operators of networks that come with int16 codes: sums, products and
// functions with some 24 bits that are right, where 16-bit codes in between would be many codes off in the
// end.
//
// Codes have 28 bits and a sign, and limits that are known: nothing overflows, whatever the network is given.
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

/// Whether a quantize node makes codes of this kind.
bool isWide(const Codes& codes);
/// Whether the operator reads or makes such codes, and has a rule for them.
bool isWide(const Lowering& lowering, const ir::Node& node);
/// Null when there is none.
Rule findWideRule(const ir::OpDef& def);

/// What has codes of 8, 16 or 32 bits, with 32.
Result<Wide> wideForm(Lowering& lowering, const QuantizedValue& real);
Result<Wide> wideOperand(Lowering& lowering, const ir::Value* value);
/// Codes that are limited from here on; `already` when whoever made them has done it.
void keepWithin(Emitter& emit, QuantizedValue& real, const Interval& limits, bool already);
/// The codes that a quantize node asks for.
Result<StoredTensor> wideCodes(Lowering& lowering, const QuantizedValue& real, const Codes& codes);
/// Sums of 48 bits as 16-bit codes, where the 15 bits of a factor would not do (and RESCALE has no more of
/// them for such sums): first as 32-bit numbers, then by factors of 31 bits. Nothing where one RESCALE is as
/// good.
Result<ir::Value*> rescaledExactly(Emitter& emit, ir::Value* sums, const Interval& within,
                                   std::span<const double> factors);
/// The result of an operator: a quantize node follows.
void defineWide(Lowering& lowering, const ir::Value* result, Wide wide);

/// The same numbers in other units, in which they must fit 31 bits.
Wide inUnits(Emitter& emit, const Wide& x, double unit);
/// The smallest power of two in units of which a number up to `reach` has `bits` bits.
double unitFor(double reach, int bits);

using Function = std::function<double(double)>;

/// A smooth function, to about 2^-22 of its range: parabolas between 511 points. The result has 28 bits.
Result<Wide> wideFunction(Emitter& emit, const Wide& x, const Function& function);

// Rules
Status lowerWideMatmul(Lowering& lowering, const ir::Node& node);
Status lowerWideLinear(Lowering& lowering, const ir::Node& node);
Status lowerWideNorm(Lowering& lowering, const ir::Node& node);

}  // namespace carina::lower
