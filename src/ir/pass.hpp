// SPDX-License-Identifier: Apache-2.0
// Runs named graph-to-graph passes, verifies the results (verifier.hpp) and hands them to a listener.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "ir/graph.hpp"

namespace carina::ir {

struct Pass {
  std::string_view name;
  std::function<Status(Graph&)> run;
};

/// Called after each pass with its name and the graph.
using PassListener = std::function<void(std::string_view, const Graph&)>;

Status runPasses(Graph& graph, std::span<const Pass> passes, const PassListener& listener = nullptr);

/// A local rewrite: returns whether it changed the graph around `node` (which it may erase).
using Rewrite = std::function<Result<bool>(Node*)>;
/// Applies the rewrites to all nodes in order until none changes anything (more than `rounds` sweeps are a
/// bug).
Status rewriteToFixpoint(Graph& graph, std::span<const Rewrite> rewrites, int rounds = 64);

}  // namespace carina::ir
