// SPDX-License-Identifier: Apache-2.0
// Collects the rules of all families, and their shared helpers.
#include "lower/rules.hpp"

#include <algorithm>
#include <numeric>

#include "lower/quantize_rules.hpp"

namespace carina::lower {

Rule findRule(const ir::OpDef& def) {
  static const Rules rules = [] {
    Rules all;
    addQuantizeRules(all);
    addPointwiseRules(all);
    addDivisionRules(all);
    addFunctionRules(all);
    addWholeNumberRules(all);
    addConvolutionRules(all);
    addPoolRules(all);
    addReduceRules(all);
    addNormRules(all);
    addMatmulRules(all);
    addViewRules(all);
    addMoveRules(all);
    addIndexRules(all);
    addResizeRules(all);
    addControlFlowRules(all);
    return all;
  }();
  const auto it = rules.find(&def);
  return it == rules.end() ? nullptr : it->second;
}

Result<SameCodes> sameCodes(Lowering& lowering, std::span<ir::Value* const> operands,
                            const ir::Value* result) {
  std::vector<QuantizedValue> reals;
  for (const ir::Value* operand : operands) {
    CARINA_TRY(QuantizedValue real, lowering.quantizedValue(operand));
    reals.push_back(std::move(real));
  }
  const auto codesOf = [](const QuantizedValue& real) {
    const DType dtype = real.data.dtype();
    return Codes{real.scale(), real.zeroPoint, integerMin(dtype), integerMax(dtype), dtype};
  };
  const auto differs = [&](const QuantizedValue& real, const Codes& codes) {
    return !real.plain() || real.scale() != codes.scale || real.zeroPoint != codes.zeroPoint ||
           real.data.dtype() != codes.dtype;
  };
  SameCodes same;
  same.codes = codesOf(reals.front());
  const bool equal = std::none_of(reals.begin(), reals.end(),
                                  [&](const QuantizedValue& r) { return differs(r, same.codes); });
  if (!equal) {
    if (const auto asked = lowering.codesAfter(result)) {
      same.codes = *asked;
    } else {
      for (const QuantizedValue& real : reals) {
        if (!real.plain())
          return fail(Code::NotQuantized, "an operand of {} is not quantized", result->producer()->opName())
              .withRemedy("quantize the network with this operator included");
        if (real.scale() > same.codes.scale) same.codes = codesOf(real);
      }
    }
  }
  for (const QuantizedValue& real : reals) {
    if (!differs(real, same.codes)) {
      same.data.push_back(real.data);
      continue;
    }
    CARINA_TRY(StoredTensor data, lowering.quantized(real, same.codes));
    same.data.push_back(std::move(data));
  }
  return same;
}

Result<Pair> quantizedPair(Lowering& lowering, const ir::Node& node) {
  Pair pair;
  for (size_t i = 0; i < 2; ++i) {
    CARINA_TRY(pair.reals[i], lowering.plainValue(node.operands()[i]));
  }
  if (pair.reals[0].data.dtype() != pair.reals[1].data.dtype()) {
    return fail(Code::UnusableQuantization, "the operands are quantized to {} and {}, expected one type",
                dtypeName(pair.reals[0].data.dtype()), dtypeName(pair.reals[1].data.dtype()))
        .withRemedy("quantize both operands to the same type");
  }
  // The broadcast shape of the operands, which is also the shape of a comparison's result.
  pair.aligned = lowering.align({pair.reals[0].data, pair.reals[1].data}, node.result()->shape());
  return pair;
}

Result<std::array<ir::Value*, 2>> inUnits(Lowering& lowering, const Pair& pair, double unit) {
  std::array<ir::Value*, 2> values{};
  for (size_t i = 0; i < 2; ++i) {
    const QuantizedValue& real = pair.reals[i];
    CARINA_TRY(values[i], lowering.emit().rescale(pair.aligned.values[i], DType::Int32, real.zeroPoint, 0,
                                                  std::array{real.scale() / unit}));
  }
  return values;
}

void defineAccumulator(Lowering& lowering, const ir::Value* result, StoredTensor data, double scale,
                       std::optional<Interval> within) {
  lowering.define(result, QuantizedValue{std::move(data), {scale}, 0, true, {}, {}, {}, {}, within});
}

}  // namespace carina::lower
