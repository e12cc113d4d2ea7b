// SPDX-License-Identifier: Apache-2.0
#include "aten/operator_facts.hpp"

#include <unordered_map>
#include <utility>
#include <vector>

namespace carina::aten {
namespace {

constexpr std::pair<OpId, OperatorFacts> kRows[] = {
#include "aten/operator_facts.inc"
};

constexpr OperatorSample kSamples[] = {
#include "aten/operator_cases.inc"
};

}  // namespace

const OperatorFacts& factsOf(OpId id) {
  static const std::vector<OperatorFacts> facts = [] {
    std::vector<OperatorFacts> table(operators().size());
    for (const auto& [op, row] : kRows) table[static_cast<size_t>(op)] = row;
    return table;
  }();
  return facts[static_cast<size_t>(id)];
}

const OperatorFacts& factsOf(const ir::Node& node) {
  static const OperatorFacts none;
  return isOperator(&node) ? factsOf(opId(&node)) : none;
}

const OperatorFacts& factsOf(std::string_view name) {
  static const OperatorFacts none;
  static const std::unordered_map<std::string_view, OpId> ids = [] {
    std::unordered_map<std::string_view, OpId> table;
    for (const ir::OpDef& def : operators()) table.emplace(def.name, static_cast<OpId>(def.id));
    return table;
  }();
  const auto found = ids.find(name);
  return found == ids.end() ? none : factsOf(found->second);
}

std::span<const OperatorSample> operatorSamples() {
  return kSamples;
}

}  // namespace carina::aten
