// SPDX-License-Identifier: Apache-2.0
#include "pipeline/delivered.hpp"

#include <algorithm>
#include <span>

#include "delivery/delegate.hpp"
#include "pipeline/tflite_network.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {
namespace {

/// Puts the TOSA graphs of `build` in the places of the parts that were compiled from them.
Status deliverAsTosa(const Build& build, pte::Method& method) {
  CARINA_CHECK(method.delegates.size() == build.partitioned.delegates.size(), "a delegate per NPU part");
  for (size_t i = 0; i < method.delegates.size(); ++i) {
    const pte::EthosUSettings settings = delivery::settingsOf(*build.machine, build.integerIo);
    CARINA_TRY(method.delegates[i], delivery::tosaDelegate(build.partitioned.delegates[i].tosa, settings));
  }
  return {};
}

/// `methods`: those of `program`, in its order.
Result<std::string> deliveredFile(const pte::Program& program, std::span<const Build> methods) {
  const auto asTosa = [](const Build& build) { return build.options.delivery == Delivery::Tosa; };
  if (std::none_of(methods.begin(), methods.end(), asTosa)) return pte::writeProgram(program);
  pte::Program delivered = program;
  for (size_t i = 0; i < methods.size(); ++i) {
    if (asTosa(methods[i])) CARINA_RETURN_IF_ERROR(deliverAsTosa(methods[i], delivered.methods[i]));
  }
  return pte::writeProgram(delivered);
}

}  // namespace

Result<std::string> programFile(const Build& build) {
  if (build.program.methods.empty() && build.tflite) return rewrittenTflite(build);
  return deliveredFile(build.program, std::span(&build, 1));
}

Result<std::string> programFile(const MethodsBuild& build) {
  return deliveredFile(build.program, build.methods);
}

}  // namespace carina::pipeline
