// SPDX-License-Identifier: Apache-2.0
// The subgraphs of a model that its operators run: IF, WHILE and CALL_ONCE.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tflite/model.hpp"

namespace carina::tflite {

struct ControlFlow {
  enum class Kind { If, While, CallOnce };
  Kind kind = Kind::If;
  /// IF: the branch for a true condition, then the other; WHILE: the condition, then the body; CALL_ONCE: the
  /// subgraph that runs in the first inference. The indices may be invalid.
  std::vector<int64_t> subgraphs;
};

/// Nothing for other operators.
std::optional<ControlFlow> controlFlowOf(const Operator& op);

/// Indices of the subgraphs that run with the main subgraph, in ascending order: the main subgraph and those
/// that its operators run, directly or indirectly. Fails on subgraphs that do not exist, that are recursive,
/// or that are nested more than 64 deep.
Result<std::vector<size_t>> runningSubgraphs(const Model& model);

}  // namespace carina::tflite
