// SPDX-License-Identifier: Apache-2.0
// Every pass from graph to graph by name, in the order in which a network meets them: what 'carina opt' runs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/work_budget.hpp"
#include "ir/parser.hpp"
#include "npu/targets/target.hpp"

namespace carina::pipeline {

struct PassSettings {
  const npu::Target* target = nullptr;  // of the passes that need one
  WorkBudget* budget = nullptr;         // for constants that are folded; null: no limit
};

enum class Dialect : uint8_t { Any, Aten, Tfl, Tosa, Npu };
std::string_view dialectName(Dialect dialect);

struct NamedPass {
  std::string_view name;     // "decompose-norm"
  Dialect takes, gives;      // of the graph's nodes
  bool needsTarget;          // PassSettings::target
  std::string_view summary;  // half a sentence
  Status (*run)(ir::Graph& graph, const PassSettings& settings);
};

std::span<const NamedPass> namedPasses();

/// Fails, with its name, on an operator of another dialect: code for one dialect would take its number for
/// one of its own.
Status checkDialect(const ir::Graph& graph, Dialect dialect);

/// The operators of all dialects, for ir::parse().
const ir::OperatorSet& allOperators();

/// Runs the passes in the order of `names`. The graph is verified at the end, with `verifyEach` after each
/// pass. Errors: an unknown name, a pass that does not take the graph's dialect or lacks a target, what a
/// pass refuses, and an invalid graph; each names the pass.
Status runNamedPasses(ir::Graph& graph, std::span<const std::string> names, const PassSettings& settings,
                      bool verifyEach);

}  // namespace carina::pipeline
