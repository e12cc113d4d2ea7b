// SPDX-License-Identifier: Apache-2.0
// Resource variables: what VAR_HANDLE names, READ_VARIABLE reads and ASSIGN_VARIABLE writes.
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

/// What a VAR_HANDLE names: operators with the same name are about the same variable, in whatever subgraph.
std::string variableName(const Operator& handle);

/// The variables of a model's operators, which refer to them by tensors of their subgraph.
class VariableNames {
 public:
  /// Operators are asked for in the order in which they stand. Nothing for those that handle no variable, and
  /// for those whose handle does not come from a VAR_HANDLE in front of them.
  std::optional<std::string> nameOf(size_t subgraph, const Operator& op);

 private:
  std::map<std::pair<size_t, int32_t>, std::string> ofHandle_;  // by subgraph and tensor
};

}  // namespace carina::tflite
