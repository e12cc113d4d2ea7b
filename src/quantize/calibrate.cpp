// SPDX-License-Identifier: Apache-2.0
// Calibration: samples run side by side, their values are observed in sample order.
#include "quantize/calibrate.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>

#include "aten/executor.hpp"

namespace carina::quantize {
namespace {

/// What one sample showed: per group its tensors in program order.
using Seen = std::vector<std::vector<Tensor>>;

}  // namespace

Result<std::vector<Range>> calibrate(const ir::Graph& graph, const Annotation& annotation,
                                     const Options& options, std::span<const Sample> samples,
                                     const Progress& progress) {
  const int levels = options.precision == Precision::Int8 ? 256 : 65536;
  const size_t groups = annotation.groups.size();
  std::vector<std::unique_ptr<Observer>> observers;
  for (size_t g = 0; g < groups; ++g) {
    observers.push_back(makeObserver(options.observer, levels));
    for (const ir::Value* value : annotation.groups[g]) {
      if (value->isConstant()) observers[g]->observe(value->constant().as<float>());
    }
  }
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph));

  const size_t wave =
      std::min<size_t>(samples.size(), static_cast<size_t>(tbb::this_task_arena::max_concurrency()));
  for (size_t first = 0; first < samples.size(); first += wave) {
    const size_t count = std::min(wave, samples.size() - first);
    std::vector<Seen> seen(count, Seen(groups));
    std::vector<Status> states(count);
    tbb::parallel_for(size_t{0}, count, [&](size_t i) {
      const auto keep = [&](const ir::Value& value, const Tensor& tensor) {
        const auto group = annotation.groupOf.find(&value);
        if (group != annotation.groupOf.end() && !value.isConstant())
          seen[i][group->second].push_back(tensor);
      };
      auto outputs = executor.run(samples[first + i], keep);
      if (!outputs.ok()) states[i] = std::move(outputs).error();
    });
    for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
    tbb::parallel_for(size_t{0}, groups, [&](size_t g) {
      for (const Seen& sample : seen) {
        for (const Tensor& tensor : sample[g]) observers[g]->observe(tensor.as<float>());
      }
    });
    if (progress) progress(first + count, samples.size());
  }

  std::vector<Range> ranges(groups);
  tbb::parallel_for(size_t{0}, groups, [&](size_t g) { ranges[g] = observers[g]->range(); });
  return ranges;
}

}  // namespace carina::quantize
