// SPDX-License-Identifier: Apache-2.0
// Resource variables: named by VAR_HANDLE, read by READ_VARIABLE, written by ASSIGN_VARIABLE.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tflite/model.hpp"

namespace carina::tflite {

/// Whether the operator is one of these three.
bool handlesVariables(const Operator& op);

/// The name that a VAR_HANDLE specifies: equal names denote the same variable, in any subgraph.
std::string variableName(const Operator& handle);

/// Maps a model's operators to their variables, which they refer to by tensors of their subgraph.
class VariableNames {
 public:
  /// Must be called for operators in execution order. Nothing for those that access no variable, and for
  /// those whose handle does not come from a preceding VAR_HANDLE.
  std::optional<std::string> nameOf(size_t subgraph, const Operator& op);

 private:
  std::map<std::pair<size_t, int32_t>, std::string> ofHandle_;  // by subgraph and tensor
};

}  // namespace carina::tflite
