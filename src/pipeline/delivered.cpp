// SPDX-License-Identifier: Apache-2.0
#include "pipeline/delivered.hpp"

#include <algorithm>
#include <span>

#include "delivery/delegate.hpp"
#include "delivery/shared_weights.hpp"
#include "pipeline/tflite_network.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {
namespace {

/// Replaces compiled NPU parts by their TOSA graphs. Constants that several methods share are stored once.
Status deliverAsTosa(std::span<const Build> methods, pte::Program& program) {
  std::vector<ir::Graph> graphs;
  for (size_t m = 0; m < methods.size(); ++m) {
    CARINA_CHECK(program.methods[m].delegates.size() == methods[m].partitioned.delegates.size(),
                 "a delegate per NPU part");
    for (const auto& part : methods[m].partitioned.delegates) graphs.push_back(part.tosa.clone());
  }
  if (methods.size() > 1) delivery::shareConstantsOfGraphs(program, graphs);
  auto graph = graphs.begin();
  for (size_t m = 0; m < methods.size(); ++m) {
    const pte::EthosUSettings settings = delivery::settingsOf(*methods[m].machine, methods[m].integerIo);
    for (pte::Delegate& delegate : program.methods[m].delegates) {
      CARINA_TRY(delegate, delivery::tosaDelegate(*graph++, settings));
    }
  }
  return {};
}

/// `methods`: those of `program`, in the same order.
Result<std::string> deliveredFile(const pte::Program& program, std::span<const Build> methods) {
  const auto asTosa = [](const Build& build) { return build.options.delivery == Delivery::Tosa; };
  if (std::none_of(methods.begin(), methods.end(), asTosa)) return pte::writeProgram(program);
  pte::Program delivered = program;
  CARINA_RETURN_IF_ERROR(deliverAsTosa(methods, delivered));
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
