// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chosen_machine.hpp"

#include "ethosn/targets/variant.hpp"
#include "pipeline/ethosn_build.hpp"
#include "pipeline/ethosn_partition.hpp"

namespace carina::pipeline {
namespace {

/// The option without which the machine could be made.
const char* optionAtFault(const Options& options) {
  const auto works = [&](const std::string& system, const std::string& mode) {
    return npu::makeMachine(options.target, system, mode, options.configFile).ok();
  };
  if (!options.systemConfig.empty() && works("", options.memoryMode)) return "--system-config";
  if (!options.memoryMode.empty() && works(options.systemConfig, "")) return "--memory-mode";
  return "--target";
}

}  // namespace

Result<npu::Machine> chosenMachine(const Options& options) {
  auto machine =
      npu::makeMachine(options.target, options.systemConfig, options.memoryMode, options.configFile);
  if (machine) return machine;
  if (ethosn::isEthosNName(options.target)) {
    return fail(Code::OptionDoesNotApply, "{} is an Ethos-N, but only an Ethos-U is supported here",
                options.target)
        .at("--target")
        .withRemedy(fmt::format("compile, run, check, ops, profile, sweep, verify and evaluate support {}",
                                options.target));
  }
  std::vector<Diagnostic> diagnostics = machine.error().diagnostics();
  for (Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.file.empty() && diagnostic.place.empty()) diagnostic.place = optionAtFault(options);
  }
  return Error(std::move(diagnostics));
}

namespace {

/// Only an Ethos-U has parts that can be compiled at load.
Status checkDelivery(const Options& options) {
  if (options.delivery == Delivery::Compiled) return {};
  if (options.target == "cpu" || ethosn::isEthosNName(options.target)) {
    return fail(Code::OptionDoesNotApply, "TOSA graphs are compiled at load for an Ethos-U, the target is {}",
                options.target)
        .at("--deliver tosa")
        .withRemedy("name an Ethos-U with --target, or leave --deliver out");
  }
  return {};
}

}  // namespace

Status checkTarget(const Options& options) {
  CARINA_RETURN_IF_ERROR(checkDelivery(options));
  if (ethosn::isEthosNName(options.target)) {
    if (auto target = chosenEthosN(options); !target) return std::move(target).error();
    return checkEthosNOptions(options);
  }
  if (options.target == "cpu") return {};
  auto machine = chosenMachine(options);
  return machine ? Status() : Status(std::move(machine).error());
}

}  // namespace carina::pipeline
