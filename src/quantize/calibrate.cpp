// SPDX-License-Identifier: Apache-2.0
// Calibration: samples run side by side, their values are observed in sample order.
#include "quantize/calibrate.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <unordered_map>

#include "aten/executor.hpp"

namespace carina::quantize {
namespace {

/// What one sample showed: per group its tensors in program order.
using Seen = std::vector<std::vector<Tensor>>;
using GroupsOf = std::unordered_map<const ir::Value*, std::vector<size_t>>;

/// The groups whose observers look at a value.
GroupsOf groupsOf(const Annotation& annotation) {
  GroupsOf result;
  for (size_t g = 0; g < annotation.groups.size(); ++g) {
    if (annotation.groups[g].widened) continue;
    for (const Form& form : annotation.groups[g].forms) result[form.value].push_back(g);
  }
  return result;
}

int levelsOf(const Group& group) {
  const CodeRange codes = activationCodes(group.precision);
  return static_cast<int>(codes.max - codes.min + 1);
}

}  // namespace

Result<std::vector<Range>> calibrate(const ir::Graph& graph, const Annotation& annotation,
                                     std::span<const Sample> samples, const Progress& progress) {
  const size_t groups = annotation.groups.size();
  const GroupsOf observing = groupsOf(annotation);
  std::vector<std::unique_ptr<Observer>> observers;
  for (const Group& group : annotation.groups) {
    observers.push_back(makeObserver(group.observer, levelsOf(group)));
    if (group.widened) continue;
    for (const Form& form : group.forms) {
      if (form.value->isConstant()) observers.back()->observe(form.value->constant().as<float>());
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
        const auto found = observing.find(&value);
        if (found == observing.end() || value.isConstant()) return;
        for (size_t g : found->second) seen[i][g].push_back(tensor);
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
  for (size_t g = 0; g < groups; ++g) {
    if (const auto from = annotation.groups[g].widened) ranges[g] = ranges[*from];
  }
  return ranges;
}

}  // namespace carina::quantize
