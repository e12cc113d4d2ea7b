// SPDX-License-Identifier: Apache-2.0
// Small networks of one operator each, from which the table of operators is made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.hpp"

namespace carina::pipeline {

struct OperatorCase {
  std::string op;    // "aten.conv2d.default"
  std::string note;  // what is special: "kernel 80 rows"; "" for the default case
  ir::Graph graph;
};

/// Adds a node of `op` with its own inputs and constants. Operands in order: f[...] float, c[...] int8,
/// h[...] int16, i[...] int32, l[...] int64, b[...] bool input; w[...] float, p[...] positive float, k[...]
/// int64 (zeros), m[...] bool constant; - absent; (...) a list. Attributes are given as NAME=VALUE, others
/// have their defaults. Errors: unknown operator or attribute, incompatible operands.
Result<ir::Node*> addOperator(ir::Graph& graph, std::string_view op, const std::string& operands,
                              const std::string& attributes);

/// In table order. Fails only on an error in the list itself, with its line.
Result<std::vector<OperatorCase>> operatorCases();

}  // namespace carina::pipeline
