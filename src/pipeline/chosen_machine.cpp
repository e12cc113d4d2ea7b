// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chosen_machine.hpp"

namespace carina::pipeline {

Result<npu::Machine> chosenMachine(const Options& options) {
  auto machine =
      npu::makeMachine(options.target, options.systemConfig, options.memoryMode, options.configFile);
  if (machine) return machine;
  std::vector<Diagnostic> diagnostics = machine.error().diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file.empty() && diagnostic.place.empty()) diagnostic.place = "--target";
  }
  return Error(std::move(diagnostics));
}

}  // namespace carina::pipeline
