// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chosen_machine.hpp"

#include "ethosn/targets/variant.hpp"

namespace carina::pipeline {

Result<npu::Machine> chosenMachine(const Options& options) {
  auto machine =
      npu::makeMachine(options.target, options.systemConfig, options.memoryMode, options.configFile);
  if (machine) return machine;
  if (ethosn::isEthosNName(options.target)) {
    return fail(Code::OptionDoesNotApply, "{} is an Ethos-N, which only compiling knows", options.target)
        .at("--target")
        .withRemedy(fmt::format("'carina compile MODEL --target {} -o OUT.encn', then 'carina run OUT.encn'",
                                options.target));
  }
  std::vector<Diagnostic> diagnostics = machine.error().diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file.empty() && diagnostic.place.empty()) diagnostic.place = "--target";
  }
  return Error(std::move(diagnostics));
}

}  // namespace carina::pipeline
