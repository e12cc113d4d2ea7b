// SPDX-License-Identifier: Apache-2.0
// Which subgraphs of a model its operators run: IF, WHILE and CALL_ONCE.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tflite/model.hpp"

namespace carina::tflite {

struct ControlFlow {
  enum class Kind { If, While, CallOnce };
  Kind kind = Kind::If;
  /// IF: the side that a true condition runs, then the other; WHILE: the condition, then the body; CALL_ONCE:
  /// what it runs in the first inference. They may not exist.
  std::vector<int64_t> subgraphs;
};

/// Nothing for other operators.
std::optional<ControlFlow> controlFlowOf(const Operator& op);

/// Subgraphs that run when the main subgraph does, by their indices in ascending order: the main subgraph and
/// what its operators run. Errors: subgraphs that do not exist, that run themselves, or that lie deeper than
/// 64 inside of one another.
Result<std::vector<size_t>> runningSubgraphs(const Model& model);

}  // namespace carina::tflite
