// SPDX-License-Identifier: Apache-2.0
// Which operators run where, determined by placing small networks: the table in docs/operators.md.
#pragma once

#include <map>

#include "pipeline/operators.hpp"

namespace carina::pipeline {

struct TableCell {
  Place place = Place::Nowhere;
  std::string reason;  // the first refusal, with what would help
};

struct TableRow {
  std::string op;                // "aten.conv2d.default"
  std::string note;              // what is special about this case
  std::vector<TableCell> cells;  // per configuration of OperatorTable
  bool cpu = false;              // the runtime has float kernels for it
};

struct OperatorTable {
  struct Configuration {
    std::string target;
    Quantization quantization;
  };
  std::vector<Configuration> configurations;
  std::vector<TableRow> rows;
};

/// For the targets, each in int8 and int16x8.
Result<OperatorTable> operatorTable(const std::vector<std::string>& targets);

}  // namespace carina::pipeline
