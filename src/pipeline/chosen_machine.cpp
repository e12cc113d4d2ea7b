// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chosen_machine.hpp"

#include "ethosn/targets/variant.hpp"

namespace carina::pipeline {

Result<npu::Machine> chosenMachine(const Options& options) {
  auto machine =
      npu::makeMachine(options.target, options.systemConfig, options.memoryMode, options.configFile);
  if (machine) return machine;
  if (ethosn::isEthosNName(options.target)) {
    return fail(Code::OptionDoesNotApply, "{} is an Ethos-N, this is for an Ethos-U alone", options.target)
        .at("--target")
        .withRemedy(fmt::format("compile, run, check, ops, profile, sweep, verify and evaluate know {}",
                                options.target));
  }
  std::vector<Diagnostic> diagnostics = machine.error().diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file.empty() && diagnostic.place.empty()) diagnostic.place = "--target";
  }
  return Error(std::move(diagnostics));
}

}  // namespace carina::pipeline
