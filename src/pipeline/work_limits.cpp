// SPDX-License-Identifier: Apache-2.0
#include "pipeline/work_limits.hpp"

#include <fmt/format.h>

#include "aten/work.hpp"
#include "ir/footprint.hpp"

namespace carina::pipeline {
namespace {

constexpr const char* kDataRemedy = "give --calibrate with samples: their bytes raise the limit";

}  // namespace

WorkBudget budgetOf(const Options& options) {
  return WorkBudget::ofFiles({options.model, options.calibration}, options.trusted || options.model.empty());
}

Status checkTensors(const ir::Graph& graph, const WorkBudget& budget) {
  constexpr int64_t kCopies = 3;
  const ir::Footprint most = ir::footprintOf(graph);
  if (most.bytes <= budget.bytes() / kCopies) return {};
  return fail(Code::Excessive,
              "the tensors of the graph take {} bytes at once, the limit for a file of this size is {}",
              most.bytes, budget.bytes() / kCopies)
      .at(most.at ? most.at->where() : "inputs")
      .withRemedy(kTrustRemedy);
}

Status checkValues(const ir::Graph& graph, const WorkBudget& budget, int copies) {
  double bytes = 0;
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* result : node->results())
      bytes += static_cast<double>(result->numElements()) * static_cast<double>(dtypeSize(result->dtype()));
  }
  const int64_t most = budget.bytes() / copies;
  if (bytes <= static_cast<double>(most)) return {};
  return fail(Code::Excessive,
              "the values of the network take {:.3g} bytes, the limit for files of this size is {}", bytes,
              most)
      .withRemedy(kTrustRemedy)
      .withRemedy(kDataRemedy);
}

Status checkWork(const ir::Graph& graph, size_t runs, WorkBudget& budget) {
  CARINA_RETURN_IF_ERROR(checkValues(graph, budget));
  Status enough =
      budget.require(static_cast<double>(runs) * aten::workOf(graph), fmt::format("{} runs in float", runs));
  if (enough.ok()) return enough;
  return std::move(enough).error().withRemedy(kDataRemedy);
}

}  // namespace carina::pipeline
