// SPDX-License-Identifier: Apache-2.0
#include "compiler/search/try_measurer.hpp"

#include <algorithm>
#include <utility>

#include "base/parallel.hpp"
#include "compiler/search/limits_to_try.hpp"

namespace carina::compiler {

std::vector<Try> TryMeasurer::prepare(std::vector<Try> all) {
  if (all.size() < 2 || spilling_) return all;
  const auto sharesChoices = [](const Try& t) { return t.limits.maxUnslicedBytes == kMaxUnslicedBytes; };
  planned_ = std::make_unique<Scheduler>(prepared_);
  // The error recurs, and is reported, when the limits are tried.
  if (!planned_->chooseButWeights(all.front().limits).ok()) return all;
  parallelForIf(prepared_.worthThreads(), all.size(), [&](size_t i) {
    if (sharesChoices(all[i]))
      all[i].plan = std::make_shared<WeightPlan>(planned_->planWeightPaths(all[i].limits));
  });
  std::vector<Try> different;
  for (Try& t : all) {
    const auto known = std::find_if(different.begin(), different.end(), [&](const Try& other) {
      return t.plan && other.plan && other.plan->uses == t.plan->uses;
    });
    const auto same = static_cast<size_t>(known - different.begin());
    if (known != different.end()) {
      if (t.effort >= known->effort) continue;
      t.same = same;
    }
    different.push_back(std::move(t));
  }
  return different;
}

/// The limits without what does not affect places.
Limits TryMeasurer::forPlaces(Limits limits) {
  limits.fast = 0;
  limits.copies = limits.longPieces = false;
  limits.sharing = PortSharing::Waiting;
  return limits;
}

/// Groups tries by their places. Tries that fail at this point get their error.
std::vector<TryMeasurer::Alike> TryMeasurer::alike(std::vector<Try>& tries) const {
  std::vector<Alike> all;
  for (size_t i = 0; i < tries.size(); ++i) {
    const Limits limits = forPlaces(tries[i].limits);
    auto same = std::find_if(all.begin(), all.end(), [&](const Alike& a) { return a.limits == limits; });
    if (same == all.end()) same = all.insert(same, Alike{limits, {}, {}});
    same->tries.push_back(i);
  }
  parallelForIf(prepared_.worthThreads(), all.size(), [&](size_t a) {
    Scheduler scheduler(prepared_);
    if (const Status status = scheduler.choosePlaces(all[a].limits); status.ok()) {
      all[a].places = scheduler.places();
    } else {
      for (const size_t i : std::exchange(all[a].tries, {})) tries[i].error = status.error();
    }
  });
  std::vector<Alike> different;
  for (Alike& a : all) {
    if (a.tries.empty()) continue;
    const auto same = std::find_if(different.begin(), different.end(),
                                   [&](const Alike& other) { return a.places == other.places; });
    if (same == different.end()) {
      different.push_back(std::move(a));
      continue;
    }
    same->tries.insert(same->tries.end(), a.tries.begin(), a.tries.end());
    if (!a.limits.cascades) same->limits = a.limits;
  }
  for (Alike& a : different) std::sort(a.tries.begin(), a.tries.end());
  return different;
}

void TryMeasurer::measureAll(std::vector<Try>& tries, bool compare, const Offer& offer) const {
  if (compare && spilling_) return measureTogether(tries, offer);
  parallelForIf(prepared_.worthThreads(), tries.size(), [&](size_t i) {
    if (!tries[i].same) offer(i, measured(tries[i], compare));
  });
  for (Try& result : tries) {
    if (result.same) result.takeCosts(tries[*result.same]);
  }
}

/// Measures all tries for a machine with a dedicated cache; of those that give the same schedule, only one.
void TryMeasurer::measureTogether(std::vector<Try>& results, const Offer& offer) const {
  const std::vector<Alike> groups = alike(results);
  parallelForIf(prepared_.worthThreads(), groups.size(), [&](size_t g) {
    const std::vector<size_t>& tries = groups[g].tries;
    Scheduler chosen(prepared_);
    Status status = chosen.choosePlaces(groups[g].limits);
    if (status.ok()) status = chosen.chooseBlocksAndPaths();
    if (!status.ok()) {
      for (const size_t i : tries) results[i].error = status.error();
      return;
    }
    std::vector<WeightPlan> plans(tries.size());
    parallelForIf(prepared_.worthThreads(), tries.size(),
                  [&](size_t t) { plans[t] = chosen.planWeightPaths(results[tries[t]].limits); });
    std::vector<size_t> first(tries.size());  // index of the first try with the same plan
    for (size_t t = 0; t < tries.size(); ++t) {
      while (plans[first[t]].uses != plans[t].uses) ++first[t];
    }
    parallelForIf(prepared_.worthThreads(), tries.size(), [&](size_t t) {
      if (first[t] != t) return;
      Try& result = results[tries[t]];
      auto scheduler = std::make_unique<Scheduler>(chosen);
      scheduler->useWeightPaths(result.limits, plans[t]);
      measureChosen(*scheduler, result);
      if (thins(result, plans[t])) {
        scheduler = std::make_unique<Scheduler>(chosen);
        scheduler->useWeightPaths(result.limits, chosen.planWeightPaths(result.limits));
        measureChosen(*scheduler, result);
      }
      scheduler->forgetWeightPaths();
      offer(tries[t], std::move(scheduler));
    });
    for (size_t t = 0; t < tries.size(); ++t) {
      if (first[t] == t) continue;
      results[tries[t]].takeCosts(results[tries[first[t]]]);
    }
  });
}

/// Whether a try that finds no place for thick slices may be repeated without them.
bool TryMeasurer::thins(Try& result, const WeightPlan& plan) {
  const bool thick = std::any_of(plan.uses.begin(), plan.uses.end(), [](const PlannedWeights& use) {
    return isSliced(use.path) && use.path != WeightPath::Sliced;
  });
  if (!result.error || !thick) return false;
  result.limits.thickSlices = false;
  result.error.reset();
  return true;
}

std::unique_ptr<Scheduler> TryMeasurer::measured(Try& result, bool compare) const {
  if (!result.plan && compare && spilling_) {
    const Scheduler* chosen = chosenFor(result.limits, result);
    if (!chosen) return std::move(placed_);
    return measuredWith(*chosen, chosen->planWeightPaths(result.limits), result);
  }
  auto scheduler = std::make_unique<Scheduler>(result.plan ? *planned_ : prepared_);
  measure(*scheduler, result, compare);
  return scheduler;
}

void TryMeasurer::measure(Scheduler& scheduler, Try& result, bool compare) const {
  if (result.plan) {
    scheduler.useWeightPaths(result.limits, *result.plan);
  } else if (Status status = scheduler.choose(result.limits); !status.ok()) {
    result.error = std::move(status).error();
    return;
  }
  if (compare) measureChosen(scheduler, result);
}

/// The scheduler for a dedicated cache that has chosen everything but weights; null if that fails, with the
/// error in `result`. Consecutive tries with the same places choose them once.
const Scheduler* TryMeasurer::chosenFor(const Limits& wanted, Try& result) const {
  const Limits limits = forPlaces(wanted);
  if (!placed_ || !(placedFor_ == limits)) {
    placed_ = std::make_unique<Scheduler>(prepared_);
    placedFor_ = limits;
    if (Status status = placed_->chooseButWeights(limits); !status.ok()) {
      result.error = std::move(status).error();
      return nullptr;
    }
  }
  return placed_.get();
}

std::unique_ptr<Scheduler> TryMeasurer::measuredWith(const Scheduler& chosen, const WeightPlan& plan,
                                                     Try& result) const {
  auto scheduler = std::make_unique<Scheduler>(chosen);
  scheduler->useWeightPaths(result.limits, plan);
  scheduler->forgetWeightPaths();
  measureChosen(*scheduler, result);
  return scheduler;
}

void TryMeasurer::measureChosen(Scheduler& scheduler, Try& result) {
  auto cycles = scheduler.expectedCycles();
  if (!cycles.ok()) {
    result.error = std::move(cycles).error();
    return;
  }
  result.cycles = *cycles;
  result.bytes = scheduler.fastBytes();
  result.arena = scheduler.arenaBehind();
}

std::unique_ptr<Scheduler> TryMeasurer::replanned(Try& next, const Try& last) const {
  if (last.plan) {
    next.plan = std::make_shared<WeightPlan>(planned_->planWeightPaths(next.limits));
    if (next.plan->uses == last.plan->uses) return nullptr;
  }
  return measured(next);
}

std::unique_ptr<Scheduler> TryMeasurer::withLongPieces(Try& next, const Try& last) const {
  next.limits = last.limits;
  next.limits.longPieces = true;
  next.effort = last.effort;
  if (last.plan) {
    next.plan = std::make_shared<WeightPlan>(planned_->planWeightPaths(next.limits));
    return savesAPercent(next.plan->cycles, last.plan->cycles) ? measured(next) : nullptr;
  }
  // Plans are estimates: in networks of few passes, all are measured.
  if (!spilling_ || prepared_.passes() <= kManyPasses) return measured(next);
  const Scheduler* chosen = chosenFor(next.limits, next);
  if (!chosen) return nullptr;
  const WeightPlan plan = chosen->planWeightPaths(next.limits);
  if (plan.cycles >= chosen->planWeightPaths(last.limits).cycles) return nullptr;
  return measuredWith(*chosen, plan, next);
}

}  // namespace carina::compiler
