// SPDX-License-Identifier: Apache-2.0
#include "quantize/together.hpp"

#include <map>

#include "quantize/group_params.hpp"
#include "quantize/planned.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// A group of a job that holds a value which other jobs have as well.
struct Holder {
  size_t job = 0, group = 0;
};
using HoldersByName = std::map<std::string, std::vector<Holder>>;

/// Adds the values of a network of a family, under names that no state variable has.
void addFamily(const Job& job, size_t index, const Annotation& annotation, HoldersByName& holders) {
  for (size_t g = 0; g < annotation.groups.size(); ++g) {
    std::map<std::string, size_t> forms;  // a value may have several
    for (const Form& form : annotation.groups[g].forms) {
      if (form.value->name.empty()) continue;
      const std::string& name = form.value->name;
      const int precision = static_cast<int>(annotation.groups[g].precision);
      holders[fmt::format("{}\n{}\n{}\n{}", job.family, name, precision, forms[name]++)].push_back(
          {index, g});
    }
  }
}

HoldersByName holdersOf(std::span<const Job> jobs, std::span<const Planned> planned) {
  HoldersByName holders;
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (!planned[j].plan) continue;
    const auto& inputs = jobs[j].graph.inputs();
    const size_t first = inputs.size() - jobs[j].options.states;
    for (size_t i = first; i < inputs.size(); ++i) {
      const auto group = planned[j].plan->annotation.groupOf(inputs[i]);
      if (group) holders[jobs[j].states[i - first]].push_back({j, *group});
    }
    if (!jobs[j].family.empty()) addFamily(jobs[j], j, planned[j].plan->annotation, holders);
  }
  return holders;
}

bool alike(const Group& a, const Group& b) {
  return a.precision == b.precision && a.wide == b.wide && a.scheme == b.scheme && !a.prequantizedScale &&
         !b.prequantizedScale;
}

/// Gives each variable one range. A group may hold several variables, so ranges propagate from one to others:
/// repeats until nothing changes.
void uniteRanges(const HoldersByName& holders, std::vector<Planned>& planned) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [name, all] : holders) {
      Range range;
      for (const Holder& holder : all) range = unite(range, planned[holder.job].plan->ranges[holder.group]);
      const Plan& first = *planned[all.front().job].plan;
      for (const Holder& holder : all) {
        Plan& plan = *planned[holder.job].plan;
        if (!alike(first.annotation.groups[all.front().group], plan.annotation.groups[holder.group]))
          continue;
        Range& own = plan.ranges[holder.group];
        changed = changed || own.min != range.min || own.max != range.max;
        own = range;
      }
    }
  }
}

}  // namespace

Result<std::vector<Quantized>> quantizeTogether(std::vector<Job> jobs, const Progress& progress) {
  std::vector<Planned> planned;
  for (Job& job : jobs) {
    auto plan = planQuantization(job.graph, job.options, job.samples, progress);
    if (!plan) return std::move(plan).error().inFile(job.file);
    planned.push_back(std::move(*plan));
  }
  uniteRanges(holdersOf(jobs, planned), planned);
  std::vector<Quantized> results;
  std::map<std::string, LayerRounding> roundings;  // by family
  KnownWeights weights;
  for (size_t j = 0; j < jobs.size(); ++j) {
    Job& job = jobs[j];
    if (planned[j].plan) {
      Plan& plan = *planned[j].plan;
      plan.params = groupParams(job.graph, plan.annotation, plan.ranges);
    }
    LayerRounding* const rounding = job.family.empty() ? nullptr : &roundings[job.family];
    auto quantized = insertPlanned(std::move(job.graph), job.options, job.samples, std::move(planned[j]),
                                   {jobs.size() > 1 ? &weights : nullptr, rounding});
    if (!quantized) return std::move(quantized).error().inFile(job.file);
    results.push_back(std::move(*quantized));
  }
  return results;
}

}  // namespace carina::quantize
