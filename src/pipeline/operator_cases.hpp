// SPDX-License-Identifier: Apache-2.0
// Small networks of one operator each: what the table of operators is made from.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace carina::pipeline {

struct OperatorCase {
  std::string op;    // "aten.conv2d.default"
  std::string note;  // what is special: "kernel 80 rows"; "" for the plain case
  ir::Graph graph;
};

/// In the order of the table. Fails only on a mistake in the list itself, with the line.
Result<std::vector<OperatorCase>> operatorCases();

}  // namespace carina::pipeline
