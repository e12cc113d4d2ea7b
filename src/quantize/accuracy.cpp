// SPDX-License-Identifier: Apache-2.0
#include "quantize/accuracy.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aten/executor.hpp"

namespace carina::quantize {
namespace {

/// Graphs with a value of more elements than this run one at a time: several at once would need several times
/// the memory.
constexpr int64_t kManyElements = int64_t{1} << 23;

bool hasLargeValue(const ir::Graph& graph) {
  const auto isLarge = [](const ir::Value* value) { return value->numElements() > kManyElements; };
  for (const ir::Node* node : graph.nodes()) {
    const auto& results = node->results();
    if (std::any_of(results.begin(), results.end(), [&](const auto& result) { return isLarge(&*result); }))
      return true;
  }
  return false;
}

}  // namespace

Result<std::optional<Accuracy>> estimateAccuracy(const Quantized& quantized, std::span<const Sample> samples,
                                                 size_t most, WorkBudget* loops) {
  if (!quantized.reference || samples.empty() || most == 0) return std::optional<Accuracy>();
  // Weights stay codes until they are read: for these few runs it does not pay to have all of them as floats.
  constexpr auto kFolding = aten::Folding::NothingThatGrows;
  CARINA_TRY(const aten::Executor real, aten::Executor::create(*quantized.reference, kFolding, loops));
  CARINA_TRY(const aten::Executor rounded, aten::Executor::create(quantized.graph, kFolding, loops));
  const size_t count = std::min(most, samples.size());
  const bool large = hasLargeValue(quantized.graph);
  std::vector<Sqnr> outputs(quantized.graph.outputs().size());
  const auto compare = [&](const std::vector<Tensor>& expected, const std::vector<Tensor>& found) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (isFloat(expected[k].dtype()) && isFloat(found[k].dtype())) outputs[k].add(expected[k], found[k]);
    }
  };
  if (large) {
    for (size_t i = 0; i < count; ++i) {
      const Sample& sample = samples[i * samples.size() / count];
      CARINA_TRY(const auto expected, real.run(sample));
      CARINA_TRY(const auto found, rounded.run(sample));
      compare(expected, found);
    }
  } else {
    // Sample i in float is run 2i, rounded it is run 2i + 1.
    std::vector<Result<std::vector<Tensor>>> runs(2 * count, std::vector<Tensor>());
    tbb::parallel_for(size_t{0}, runs.size(), [&](size_t i) {
      runs[i] = (i % 2 == 0 ? real : rounded).run(samples[i / 2 * samples.size() / count]);
    });
    for (size_t i = 0; i < count; ++i) {
      CARINA_TRY(const auto expected, std::move(runs[2 * i]));
      CARINA_TRY(const auto found, std::move(runs[2 * i + 1]));
      compare(expected, found);
    }
  }
  Accuracy accuracy;
  accuracy.samples = count;
  accuracy.decibels = std::numeric_limits<double>::infinity();
  for (const Sqnr& output : outputs) {
    const double decibels = output.decibels();
    if (std::isnan(decibels)) continue;
    accuracy.decibels = std::min(accuracy.decibels, decibels);
    ++accuracy.outputs;
  }
  if (accuracy.outputs == 0) return std::optional<Accuracy>();
  return std::optional<Accuracy>(accuracy);
}

}  // namespace carina::quantize
