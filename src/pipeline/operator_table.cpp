// SPDX-License-Identifier: Apache-2.0
#include "pipeline/operator_table.hpp"

#include "pipeline/operator_cases.hpp"

namespace carina::pipeline {
namespace {

TableCell cellOf(const OperatorList& list) {
  TableCell cell;
  for (const OperatorPlace& op : list.operators) {
    cell.place = op.place;
    if (op.refusals.empty()) continue;
    const partition::Refusal& refusal = op.refusals.front();
    cell.reason = refusal.reason;
    if (!refusal.remedy.empty()) cell.reason += " (" + refusal.remedy + ")";
  }
  return cell;
}

bool hasKernels(const OperatorList& list) {
  for (const OperatorPlace& op : list.operators) {
    if (!op.missing.empty()) return false;
  }
  return true;
}

}  // namespace

Result<OperatorTable> operatorTable(const std::vector<std::string>& targets) {
  OperatorTable table;
  for (const std::string& target : targets) {
    for (const Quantization quantization : {Quantization::Int8, Quantization::Int16x8})
      table.configurations.push_back({target, quantization});
  }
  CARINA_TRY(const std::vector<OperatorCase> cases, operatorCases());
  for (const OperatorCase& one : cases) {
    TableRow& row = table.rows.emplace_back();
    row.op = one.op;
    row.note = one.note;
    Options options;
    for (const OperatorTable::Configuration& configuration : table.configurations) {
      options.target = configuration.target;
      options.quantization = configuration.quantization;
      auto list = listOperators(options, one.graph.clone());
      if (!list) return std::move(list).error().at(fmt::format("{} {}", one.op, one.note));
      row.cells.push_back(cellOf(*list));
    }
    options.target = "cpu";
    options.quantization = Quantization::None;
    CARINA_TRY(const OperatorList list, listOperators(options, one.graph.clone()));
    row.cpu = hasKernels(list);
  }
  return table;
}

}  // namespace carina::pipeline
