// SPDX-License-Identifier: Apache-2.0
// Every graph-to-graph pass by name, in the order in which they apply to a network; run by 'carina opt'.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/work_budget.hpp"
#include "ir/parser.hpp"
#include "npu/targets/target.hpp"

namespace carina::pipeline {

struct PassSettings {
  const npu::Target* target = nullptr;  // for passes that need one
  WorkBudget* budget = nullptr;         // for constant folding; null: no limit
};

enum class Dialect : uint8_t { Any, Aten, Tfl, Tosa, Npu };
std::string_view dialectName(Dialect dialect);

struct NamedPass {
  std::string_view name;     // "decompose-norm"
  Dialect takes, gives;      // of the graph's nodes
  bool needsTarget;          // PassSettings::target
  std::string_view summary;  // a phrase
  Status (*run)(ir::Graph& graph, const PassSettings& settings);
};

std::span<const NamedPass> namedPasses();

/// Fails on an operator of another dialect, naming it: code for one dialect would interpret its index as an
/// operator of its own.
Status checkDialect(const ir::Graph& graph, Dialect dialect);

/// The operators of all dialects, for ir::parse().
const ir::OperatorSet& allOperators();

/// Runs the passes in the order of `names`. The graph is verified at the end, with `verifyEach` after each
/// pass. Errors: an unknown name, a pass that does not accept the graph's dialect or lacks a target, a pass
/// that fails, and an invalid graph; each names the pass.
Status runNamedPasses(ir::Graph& graph, std::span<const std::string> names, const PassSettings& settings,
                      bool verifyEach);

}  // namespace carina::pipeline
