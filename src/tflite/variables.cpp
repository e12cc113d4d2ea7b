// SPDX-License-Identifier: Apache-2.0
#include "tflite/variables.hpp"

#include <fmt/format.h>

namespace carina::tflite {

bool handlesVariables(const Operator& op) {
  return !op.custom &&
         (op.name == "VAR_HANDLE" || op.name == "READ_VARIABLE" || op.name == "ASSIGN_VARIABLE");
}

std::string variableName(const Operator& handle) {
  std::string name;
  for (const Option& option : handle.options) name += fmt::format("{}:{};", option.text.size(), option.text);
  return name;
}

std::optional<std::string> VariableNames::nameOf(size_t subgraph, const Operator& op) {
  if (!handlesVariables(op)) return std::nullopt;
  if (op.name == "VAR_HANDLE") {
    std::string name = variableName(op);
    if (!op.outputs.empty()) ofHandle_[{subgraph, op.outputs.front()}] = name;
    return name;
  }
  if (op.inputs.empty()) return std::nullopt;
  const auto known = ofHandle_.find({subgraph, op.inputs.front()});
  return known == ofHandle_.end() ? std::nullopt : std::optional(known->second);
}

}  // namespace carina::tflite
