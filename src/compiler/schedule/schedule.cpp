// SPDX-License-Identifier: Apache-2.0
// Questions to a schedule (schedule.hpp).
#include "compiler/schedule/schedule.hpp"

#include "compiler/schedule/operation_builder.hpp"

namespace carina::compiler {

std::vector<const ir::Value*> memoryInputs(const Schedule& schedule, const Pass& pass) {
  if (pass.isDma) return {pass.node->operands().begin(), pass.node->operands().end()};
  const OperationInputs inputs = operationInputs(pass.node, *schedule.machine.target);
  std::vector<const ir::Value*> values;
  for (const ir::Value* value : {inputs.ifm, inputs.ifm2}) {
    if (value && !schedule.chained.contains(value)) values.push_back(value);
  }
  return values;
}

uint8_t regionOf(npu::Area area) {
  switch (area) {
    case npu::Area::Constants:
      return 0;
    case npu::Area::Arena:
      return 1;
    case npu::Area::Cache:
      return 2;
  }
  return 1;
}

}  // namespace carina::compiler
