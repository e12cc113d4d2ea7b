// SPDX-License-Identifier: Apache-2.0
#include "pipeline/delivered.hpp"

#include "delivery/delegate.hpp"

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

}  // namespace

Result<pte::Program> deliveredProgram(const Build& build) {
  pte::Program program = build.program;
  if (build.options.delivery == Delivery::Tosa)
    CARINA_RETURN_IF_ERROR(deliverAsTosa(build, program.methods.front()));
  return program;
}

Result<pte::Program> deliveredProgram(const MethodsBuild& build) {
  pte::Program program = build.program;
  for (size_t i = 0; i < build.methods.size(); ++i) {
    if (build.methods[i].options.delivery == Delivery::Tosa)
      CARINA_RETURN_IF_ERROR(deliverAsTosa(build.methods[i], program.methods[i]));
  }
  return program;
}

}  // namespace carina::pipeline
