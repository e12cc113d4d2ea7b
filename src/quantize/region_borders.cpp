// SPDX-License-Identifier: Apache-2.0
#include "quantize/region_borders.hpp"

#include <vector>

#include "aten/control_flow.hpp"
#include "quantize/border_codes.hpp"
#include "quantize/qparams.hpp"

namespace carina::quantize {
namespace {

using Found = std::optional<BorderCodes>;

/// Codes for an observed range; empty if nothing was observed.
Found codesOf(const Range& range, bool wide) {
  if (range.empty()) return std::nullopt;
  const QParams q = wide ? symmetricQParams(range.min, range.max, kInt16Activation, kEpsInt16)
                         : affineQParams(range.min, range.max, kInt8Activation);
  return BorderCodes{q.scale, q.zeroPoint, q.codes.min, q.codes.max, q.codes.dtype};
}

/// The codes of a value on its producer's side: those of its dequantize node, or of a quantize node that also
/// reads it.
Found madeWith(const ir::Value& value) {
  if (const Found codes = madeOf(value)) return codes;
  for (const ir::Use& use : value.uses()) {
    if (const auto quantize = ir::dynCast<aten::QuantizePerTensor>(use.node))
      return BorderCodes::of(quantize);
  }
  return std::nullopt;
}

/// The codes of a float value. Constants are quantized immediately.
ir::Value* codesOf(ir::Graph& graph, ir::Node* before, ir::Value* value, const BorderCodes& codes,
                   const ir::LocationRef& location) {
  if (!value->isConstant()) {
    return quantized(ir::Builder(graph, before, location), value, codes);
  }
  const QParams q{codes.scale, codes.zeroPoint, {codes.dtype, codes.low, codes.high}};
  Tensor tensor = Tensor::zeros(codes.dtype, value->shape());
  const auto numbers = value->constant().as<float>();
  for (size_t i = 0; i < numbers.size(); ++i)
    tensor.setIntegerAt(static_cast<int64_t>(i), quantizeValue(numbers[i], q));
  ir::Value* constant = graph.addConstant(std::move(tensor));
  constant->quantization = ir::Quantization{{codes.scale}, {codes.zeroPoint}, -1};
  return constant;
}

/// The codes requested by a value's producers and readers.
class Agreement {
 public:
  /// For a producer, which must have codes (constants have none yet, any will do).
  void make(const ir::Value& value) {
    if (!value.isConstant()) say(madeWith(value), true);
  }
  /// For a reader, which may have none.
  void read(const ir::Value& value) { say(readAs(value), false); }

  /// The codes on which all agree; otherwise codes for the range, with 16 bits if any of them has 16 bits.
  Found settle(const Range& range, bool wide) const {
    if (said_ && agree_) return said_;
    return codesOf(range, wide || wide_);
  }

 private:
  void say(const Found& codes, bool must) {
    if (!codes) {
      agree_ = agree_ && !must;
      return;
    }
    wide_ = wide_ || codes->dtype == DType::Int16;
    agree_ = agree_ && (!said_ || *said_ == *codes);
    said_ = codes;
  }
  Found said_;
  bool agree_ = true, wide_ = false;
};

class RegionBorder {
 public:
  RegionBorder(ir::Node& node, const BorderRange& ranges, bool wide)
      : node_(node), ranges_(ranges), wide_(wide) {}

  void run() {
    if (node_.is(aten::condDef())) {
      takeOperands(0);
      giveResults();
    } else {
      carry();
      takeOperands(node_.operandGroup(0).size());
    }
    for (const auto& region : node_.regions()) region->eraseDeadNodes();
  }

 private:
  static bool isFloatValue(const ir::Value& value) { return value.dtype() == DType::Float32; }

  /// Turns operand number `flat` into codes.
  void setOperand(size_t flat, const BorderCodes& codes) {
    node_.setOperand(flat, codesOf(node_.graph(), &node_, node_.operands()[flat], codes, node_.location()));
  }

  void enter(ir::Graph& region, size_t input, const BorderCodes& codes) const {
    carryAsCodes(region, region.inputs()[input], codes, region.firstNode(), node_.location());
  }

  void leave(ir::Graph& region, size_t output, const BorderCodes& codes) const {
    region.setOutput(output, codesOf(region, nullptr, region.outputs()[output], codes, node_.location()));
  }

  void giveResult(size_t i, const BorderCodes& codes) {
    carryAsCodes(node_.graph(), node_.result(i), codes, node_.next(), node_.location());
  }

  /// Operands that the regions read but do not change: the second group, which starts at input `firstInput`.
  void takeOperands(size_t firstInput) {
    const size_t before = node_.operandGroup(0).size();
    for (size_t i = 0; i < node_.operandGroup(1).size(); ++i) {
      const ir::Value& operand = *node_.operandGroup(1)[i];
      if (!isFloatValue(operand)) continue;
      Agreement agreement;
      agreement.make(operand);
      const Found codes = agreement.settle(ranges_.taken[firstInput + i], wide_);
      if (!codes) continue;
      setOperand(before + i, *codes);
      for (const auto& region : node_.regions()) enter(*region, firstInput + i, *codes);
    }
  }

  void giveResults() {
    for (size_t i = 0; i < node_.results().size(); ++i) {
      if (!isFloatValue(*node_.result(i))) continue;
      Agreement agreement;
      for (const auto& region : node_.regions()) agreement.make(*region->outputs()[i]);
      const Found read = readAs(*node_.result(i));
      const Found codes = read ? read : agreement.settle(ranges_.given[i], wide_);
      if (!codes) continue;
      for (const auto& region : node_.regions()) leave(*region, i, *codes);
      giveResult(i, *codes);
    }
  }

  /// Loop-carried values have the same codes before the loop, in every iteration, and after it.
  void carry() {
    ir::Graph &test = node_.region(0), &body = node_.region(1);
    std::vector<Found> codes(node_.operandGroup(0).size());
    for (size_t i = 0; i < codes.size(); ++i) {
      if (!isFloatValue(*node_.result(i))) continue;
      Agreement agreement;
      agreement.make(*node_.operandGroup(0)[i]);
      agreement.make(*body.outputs()[i]);
      agreement.read(*body.inputs()[i]);
      agreement.read(*test.inputs()[i]);
      codes[i] = agreement.settle(ranges_.taken[i], wide_);
    }
    for (size_t i = 0; i < codes.size(); ++i) {
      if (!codes[i]) continue;
      setOperand(i, *codes[i]);
      enter(test, i, *codes[i]);
      enter(body, i, *codes[i]);
      leave(body, i, *codes[i]);
      giveResult(i, *codes[i]);
    }
  }

  ir::Node& node_;
  const BorderRange& ranges_;
  const bool wide_;
};

}  // namespace

void carryCodesIntoRegions(ir::Graph& graph, const BorderRanges& ranges, bool wide) {
  for (ir::Node* node : graph.nodes()) {
    const auto known = ranges.find(node);
    if (known != ranges.end()) RegionBorder(*node, known->second, wide).run();
  }
  graph.eraseDeadNodes();
}

}  // namespace carina::quantize
