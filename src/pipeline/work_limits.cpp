// SPDX-License-Identifier: Apache-2.0
#include "pipeline/work_limits.hpp"

#include <fmt/format.h>

#include "aten/work.hpp"

namespace carina::pipeline {
namespace {

constexpr const char* kDataRemedy = "--calibrate with samples: their bytes count, too";

}  // namespace

WorkBudget budgetOf(const Options& options) {
  return WorkBudget::ofFiles({options.model, options.calibration}, options.trusted || options.model.empty());
}

Status checkWork(const ir::Graph& graph, size_t runs, WorkBudget& budget) {
  double bytes = 0;
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* result : node->results())
      bytes += static_cast<double>(result->numElements()) * static_cast<double>(dtypeSize(result->dtype()));
  }
  if (bytes > static_cast<double>(budget.bytes())) {
    return fail(Code::Excessive,
                "the network's values take {:.3g} bytes, the limit for files of this size is {}", bytes,
                budget.bytes())
        .withRemedy(kTrustRemedy)
        .withRemedy(kDataRemedy);
  }
  Status enough =
      budget.require(static_cast<double>(runs) * aten::workOf(graph), fmt::format("{} runs in float", runs));
  if (enough.ok()) return enough;
  return std::move(enough).error().withRemedy(kDataRemedy);
}

}  // namespace carina::pipeline
