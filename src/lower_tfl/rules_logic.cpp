// SPDX-License-Identifier: Apache-2.0
// Comparisons, boolean logic, selection.
#include <algorithm>

#include "lower_tfl/lowering.hpp"

namespace carina::lower_tfl {
namespace {

/// Operand `index` to compare: int32 unchanged, codes as real numbers in units of 2^-8.
Result<ir::Value*> comparable(Lowering& lowering, const ir::Node& node, size_t index) {
  const ir::Value* value = node.operand(index);
  ir::Value* raw = lowering.ranked(value, std::max<int64_t>(node.result()->rank(), 1));
  if (value->dtype() == DType::Int32) return raw;
  CARINA_TRY(const Quantum quantum, lowering.bytesOf(value, "operand"));
  constexpr int kBits = 8;
  return lowering.rescale(lowering.widened(raw, quantum.zero, kBits), DType::Int32, 0, 0,
                          quantizeMultiplier(quantum.scale));
}

/// kSwap: compares b with a. kNot: negates the result.
template <Binary kBinary, bool kSwap, bool kNot>
Status lowerCompare(Lowering& lowering, const ir::Node& node) {
  CARINA_TRY(ir::Value * a, comparable(lowering, node, 0));
  CARINA_TRY(ir::Value * b, comparable(lowering, node, 1));
  Emitter& emit = lowering.emit();
  ir::Value* truth = emit.binary(kBinary, kSwap ? b : a, kSwap ? a : b);
  if (kNot) truth = emit.unary(Unary::LogicalNot, truth);
  lowering.define(node.result(), emit.reshape(truth, node.result()->shape()));
  return {};
}

template <Binary kBinary>
Status lowerLogical(Lowering& lowering, const ir::Node& node) {
  const int64_t rank = std::max<int64_t>(node.result()->rank(), 1);
  ir::Value* truth = lowering.emit().binary(kBinary, lowering.ranked(node.operand(0), rank),
                                            lowering.ranked(node.operand(1), rank));
  lowering.define(node.result(), lowering.emit().reshape(truth, node.result()->shape()));
  return {};
}

Status lowerNot(Lowering& lowering, const ir::Node& node) {
  if (node.operand(0)->dtype() != DType::Bool)
    return fail(Code::NoIntegerForm, "its operand is {}", ir::typeText(node.operand(0)->type));
  lowering.define(node.result(), lowering.emit().unary(Unary::LogicalNot, lowering.get(node.operand(0))));
  return {};
}

Status lowerSelect(Lowering& lowering, const ir::Node& node) {
  const ir::Value* output = node.result();
  if (dtypeSize(output->dtype()) <= 2 && output->quantization) {
    CARINA_TRY(const Quantum to, lowering.codesOf(output, "result"));
    for (size_t i : {size_t{1}, size_t{2}}) {
      CARINA_TRY(const Quantum from, lowering.codesOf(node.operand(i), "choice"));
      if (from.zero != to.zero || from.single() != to.single())
        return fail(Code::UnusableQuantization, "'{}' and '{}' have different quantizations",
                    node.operand(i)->name, output->name)
            .withRemedy("give both choices and the result the same scale and zero point");
    }
  }
  Emitter& emit = lowering.emit();
  const int64_t rank = std::max<int64_t>(output->rank(), 1);
  const ir::Value* condition = node.operand(0);
  ir::Value* truth = lowering.ranked(condition, rank);
  if (ir::isa<tfl::Select>(&node) && condition->rank() == 1 && node.operand(1)->rank() > 1) {
    Shape rows(static_cast<size_t>(rank), 1);
    rows[0] = condition->dim(0);
    truth = emit.reshape(truth, rows);
  }
  ir::Value* chosen =
      emit.select(truth, lowering.ranked(node.operand(1), rank), lowering.ranked(node.operand(2), rank));
  lowering.define(output, emit.reshape(chosen, output->shape()));
  return {};
}

}  // namespace

void addLogicRules(Rules& rules) {
  rules[&tfl::Equal::def()] = lowerCompare<Binary::Equal, false, false>;
  rules[&tfl::NotEqual::def()] = lowerCompare<Binary::Equal, false, true>;
  rules[&tfl::Greater::def()] = lowerCompare<Binary::Greater, false, false>;
  rules[&tfl::GreaterEqual::def()] = lowerCompare<Binary::GreaterEqual, false, false>;
  rules[&tfl::Less::def()] = lowerCompare<Binary::Greater, true, false>;
  rules[&tfl::LessEqual::def()] = lowerCompare<Binary::GreaterEqual, true, false>;
  rules[&tfl::LogicalAnd::def()] = lowerLogical<Binary::LogicalAnd>;
  rules[&tfl::LogicalOr::def()] = lowerLogical<Binary::LogicalOr>;
  rules[&tfl::LogicalNot::def()] = lowerNot;
  rules[&tfl::Select::def()] = lowerSelect;
  rules[&tfl::SelectV2::def()] = lowerSelect;
}

}  // namespace carina::lower_tfl
