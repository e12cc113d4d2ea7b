// SPDX-License-Identifier: Apache-2.0
// The operators of a network with their placement, as a table and as JSON.
#pragma once

#include <string>

#include "pipeline/operator_table.hpp"

namespace carina::report {

std::string operatorsText(const pipeline::OperatorList& list);
std::string operatorsJson(const pipeline::OperatorList& list);

/// The operators as comma-separated values.
std::string operatorsCsv(const pipeline::OperatorList& list);

/// The table of operators as in docs/operators.md.
std::string operatorTableMarkdown(const pipeline::OperatorTable& table);

}  // namespace carina::report
