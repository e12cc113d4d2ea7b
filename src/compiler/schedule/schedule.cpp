// SPDX-License-Identifier: Apache-2.0
// Queries on a schedule (schedule.hpp).
#include "compiler/schedule/schedule.hpp"

namespace carina::compiler {

MemoryInputs memoryInputs(const Schedule& schedule, const Pass& pass) {
  MemoryInputs inputs;
  if (pass.isDma) {
    for (const ir::Value* operand : pass.node->operands())
      inputs.add({operand, schedule.storage->access(operand).buffer});
    return inputs;
  }
  for (const PassValue& input : {pass.ifm, pass.ifm2}) {
    if (input.value && !schedule.chained.contains(input.value)) inputs.add(input);
  }
  return inputs;
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
