// SPDX-License-Identifier: Apache-2.0
// The search (search.hpp): within an arena of given size, or for the smallest one; with weights that other
// programs hold.
#include "compiler/search/search.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/parallel.hpp"
#include "compiler/search/limit_search.hpp"
#include "compiler/search/limits_to_try.hpp"
#include "compiler/search/scheduler.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kSameArena = 256;  // arenas that differ by less than such a part are equally small

/// Limits for schedules with cascades that are to take at most `bytes` of arena (0: as few as possible).
/// Their weights are copied slice by slice regardless of memory, use what the maps leave, or are read in
/// place.
std::vector<Limits> smallArenas(const npu::Machine& machine, const Options& options, int64_t bytes) {
  const int64_t cache = cacheLimit(machine, options);
  std::vector<Limits> all{{.cascades = bytes, .maps = cache, .fast = cache, .ahead = false}};
  if (!machine.memory.slowConstants() || machine.memory.spilling()) return all;
  for (const bool inPlace : {false, true})
    all.push_back({.cascades = bytes, .maps = cache, .fast = bytes, .inPlace = inPlace});
  return all;
}

Result<Schedule> scheduleWithin(const Scheduler& prepared, const Limits& limits) {
  Scheduler scheduler = prepared;
  CARINA_RETURN_IF_ERROR(scheduler.choose(limits));
  return scheduler.finish();
}

Result<Schedule> smallest(const Scheduler& prepared, const npu::Machine& machine, const Options& options) {
  std::vector<Limits> tries = smallArenas(machine, options, 0);
  // Addresses may take more memory than live bytes: more maps in rolling buffers are not always better.
  for (size_t i = 0, count = prepared.hasParts() ? tries.size() : 0; i < count; ++i) {
    tries.push_back(tries[i]);
    tries.back().rolling = RollingMaps::Whole;
  }
  std::optional<Schedule> best;
  for (const Limits& limits : tries) {
    CARINA_TRY(Schedule found, scheduleWithin(prepared, limits));
    if (!best || isSmaller(found, *best)) best = std::move(found);
  }
  return std::move(*best);
}

/// Keeps the fastest schedule that fits.
class Fitting {
 public:
  explicit Fitting(int64_t limit) : limit_(limit) {}
  void offer(Schedule schedule) {
    if (schedule.arenaBytes > limit_) return;
    const npu::Cycles cycles = streamCycles(schedule);
    if (best_ && cycles >= cycles_) return;
    best_ = std::move(schedule);
    cycles_ = cycles;
  }
  bool found() const { return best_.has_value(); }
  npu::Cycles cycles() const { return cycles_; }
  std::optional<Schedule> take() { return std::move(best_); }

 private:
  int64_t limit_;
  std::optional<Schedule> best_;
  npu::Cycles cycles_ = 0;
};

/// Limits with cascades to try for an arena of `limit` bytes: what the maps leave is for weights, so cascades
/// may also be chosen for less.
std::vector<Limits> aimsFor(const Scheduler& prepared, const npu::Machine& machine, const Options& options,
                            int64_t limit) {
  std::vector<Limits> aims;
  for (const Limits& limits : smallArenas(machine, options, limit)) {
    aims.push_back(limits);
    if (machine.memory.slowConstants() && !limits.inPlace) {
      for (const int64_t staging : shortStaging(prepared, limit)) {
        aims.push_back(limits);
        aims.back().maxUnslicedBytes = staging;
      }
    }
    for (const int64_t parts : {31, 30, 28, 24, 20}) {
      if (!limits.ahead) continue;
      aims.push_back(limits);
      aims.back().cascades = limit * parts / 32;
    }
  }
  return aims;
}

/// The fastest schedule with cascades in an arena of `limit` bytes, if there is one.
Result<std::optional<Schedule>> cascadesWithin(const Scheduler& prepared, const npu::Machine& machine,
                                               const Options& options, int64_t limit) {
  constexpr int kAttempts = 4;
  // Bound on the passes of all completed schedules: networks of up to about a thousand passes are completed
  // for all aims and attempts.
  constexpr size_t kMaxPasses = size_t{1} << 16;
  size_t left = std::max<size_t>(kMaxPasses / std::max<size_t>(prepared.passes(), 1), 4);
  struct Aim {
    Limits limits;
    std::optional<Error> error;
    npu::Cycles cycles = 0;  // expected
  };
  std::vector<Aim> aims;
  for (Limits& limits : aimsFor(prepared, machine, options, limit)) {
    if (aims.size() < left) aims.push_back({limits, std::nullopt, 0});
  }
  parallelForIf(prepared.worthThreads(), aims.size(), [&](size_t i) {
    Scheduler scheduler = prepared;
    Status status = scheduler.choose(aims[i].limits);
    if (status.ok()) {
      if (auto cycles = scheduler.expectedCycles(); cycles.ok()) {
        aims[i].cycles = *cycles;
      } else {
        status = std::move(cycles).error();
      }
    }
    if (!status.ok()) aims[i].error = std::move(status).error();
  });
  for (Aim& aim : aims) {
    if (aim.error) return std::move(*aim.error);
  }
  std::stable_sort(aims.begin(), aims.end(), [](const Aim& a, const Aim& b) { return a.cycles < b.cycles; });
  Fitting fitting(limit);
  for (Aim& aim : aims) {
    // Slower by more than the error of expectations: keep what fits already.
    if (fitting.found() && aim.cycles > fitting.cycles() + fitting.cycles() / 50) break;
    // Addresses may need slightly more than the live bytes by which cascades are chosen: aim lower then.
    for (int attempt = 0; attempt < kAttempts && left > 0; ++attempt, --left) {
      CARINA_TRY(Schedule found, scheduleWithin(prepared, aim.limits));
      const int64_t beyond = found.arenaBytes - limit;
      fitting.offer(std::move(found));
      if (beyond <= 0) break;
      aim.limits.cascades = std::max<int64_t>(*aim.limits.cascades - beyond, 1);
      if (aim.limits.ahead) aim.limits.fast = std::max<int64_t>(aim.limits.fast - beyond, 1);
    }
  }
  return fitting.take();
}

/// The best schedule that a prepared scheduler finds. `sharing`: see Scheduler::share().
Result<Schedule> bestOf(const Scheduler& prepared, const ir::Graph& graph, const npu::Machine& machine,
                        const Options& options, Ends ends, int sharing = 0) {
  const bool size = options.optimize == Optimize::Size;
  std::optional<Schedule> least;
  int64_t limit = options.arenaLimit;
  if (size) {
    CARINA_TRY(least, smallest(prepared, machine, options));
    if (limit > 0 && least->arenaBytes > limit) return arenaTooLarge(*least, limit);
    limit = least->arenaBytes;
  }
  CARINA_TRY(Schedule fastest, fastestSchedule(prepared, machine, options, limit));
  if (machine.memory.spilling() && options.cacheLimit > 0) {
    // A schedule chosen for the whole cache is a candidate if it takes no more than this.
    Options whole = options;
    whole.cacheLimit = 0;
    Scheduler again(graph, machine, whole, ends);
    CARINA_RETURN_IF_ERROR(again.prepare());
    again.share(sharing);
    Result<Schedule> free = fastestSchedule(again, machine, whole, limit, options.cacheLimit);
    if (free.ok() && free->cacheBytes <= options.cacheLimit && streamCycles(*free) < streamCycles(fastest))
      fastest = std::move(*free);
  }
  if (limit == 0) return fastest;
  Fitting fitting(limit);
  fitting.offer(std::move(fastest));
  if (!size) {
    // More memory never costs cycles: the program that would be chosen without a limit is a candidate if it
    // fits; otherwise, the best of its tries that fits, and schedules for less memory.
    CARINA_TRY(Schedule free, fastestSchedule(prepared, machine, options, 0));
    const bool fits = free.arenaBytes <= limit;
    fitting.offer(std::move(free));
    if (fits) return std::move(*fitting.take());
    CARINA_TRY(Schedule aimed, fastestSchedule(prepared, machine, options, 0, limit));
    fitting.offer(std::move(aimed));
    for (const int64_t parts : {31, 30, 29, 28, 24}) {
      CARINA_TRY(Schedule tighter, fastestSchedule(prepared, machine, options, limit * parts / 32));
      fitting.offer(std::move(tighter));
    }
  }
  CARINA_TRY(std::optional<Schedule> cascaded, cascadesWithin(prepared, machine, options, limit));
  if (cascaded) fitting.offer(std::move(*cascaded));
  if (!least) {
    CARINA_TRY(least, smallest(prepared, machine, options));
  }
  if (least->arenaBytes > limit && !fitting.found()) return arenaTooLarge(*least, limit);
  if (!size && limit <= least->arenaBytes + least->arenaBytes / 4) {
    // The best schedule for the smallest arena is a candidate as well: slightly more memory gains no more
    // than the error of expectations.
    Options smaller = options;
    smaller.optimize = Optimize::Size;
    smaller.arenaLimit = 0;
    Scheduler again(graph, machine, smaller, ends);
    CARINA_RETURN_IF_ERROR(again.prepare());
    again.share(sharing);
    CARINA_TRY(least, bestOf(again, graph, machine, smaller, ends, sharing));
  }
  fitting.offer(std::move(*least));
  return std::move(*fitting.take());
}

/// The same with weights read as other programs read them, if that costs little. The order of weights is
/// searched among blocks that cost an operation up to twice the cycles, then less, until the whole program
/// takes at most 3 % more cycles, and no more memory than without sharing or than another program.
Result<Schedule> sharedOrAlone(Scheduler& prepared, const ir::Graph& graph, const npu::Machine& machine,
                               const Options& options, Ends ends) {
  constexpr int kMaxPercent = 3;
  npu::Cycles cycles = 0;
  int64_t arena = options.known->arenaBytes();
  {
    CARINA_TRY(Schedule alone, bestOf(prepared, graph, machine, options, ends));
    if (options.known->holdAll(alone)) return alone;
    cycles = streamCycles(alone);
    arena = std::max(arena, alone.arenaBytes);
  }
  const bool limited = options.arenaLimit > 0 || options.optimize == Optimize::Size;
  for (const int percent : {100, 50, 25, 12, 6}) {
    prepared.share(percent);
    const auto isGood = [&](const Result<Schedule>& found) {
      return found.ok() && found->arenaBytes <= arena &&
             streamCycles(*found) * 100 <= cycles * (100 + kMaxPercent);
    };
    Result<Schedule> found = bestOf(prepared, graph, machine, options, ends, percent);
    if (isGood(found)) return found;
    if (limited || machine.memory.spilling()) continue;
    found = fastestSchedule(prepared, machine, options, arena);
    if (isGood(found)) return found;
  }
  prepared.share(0);
  return bestOf(prepared, graph, machine, options, ends);
}

/// One layout of maps and order of passes to search.
struct Variant {
  Options options;
  std::unique_ptr<Scheduler> prepared;
};
using Variants = std::vector<std::unique_ptr<Variant>>;

/// The usual one first; for little memory, also those that may need less. Behind a cache, most maps are in
/// the cache whatever their order.
Result<Variants> variantsOf(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
                            Ends ends) {
  Variants variants;
  const auto add = [&](bool padsBricks, bool freesEarly) -> Status {
    auto variant = std::make_unique<Variant>(Variant{options, nullptr});
    variant->options.padsBricks = padsBricks;
    variant->options.freesMapsEarly = freesEarly;
    variant->prepared = std::make_unique<Scheduler>(graph, machine, variant->options, ends);
    CARINA_RETURN_IF_ERROR(variant->prepared->prepare());
    if (!freesEarly || variant->prepared->isReordered()) variants.push_back(std::move(variant));
    return {};
  };
  CARINA_RETURN_IF_ERROR(add(true, false));
  const bool little = options.optimize == Optimize::Size || options.arenaLimit > 0;
  if (!little || machine.memory.spilling()) return variants;
  CARINA_RETURN_IF_ERROR(add(true, true));
  if (!variants.front()->prepared->padsBricks()) return variants;
  CARINA_RETURN_IF_ERROR(add(false, false));
  CARINA_RETURN_IF_ERROR(add(false, true));
  return variants;
}

}  // namespace

bool isSmaller(const Schedule& a, const Schedule& b) {
  const auto [less, more] = std::minmax(a.arenaBytes, b.arenaBytes);
  if (more - less > less / kSameArena) return a.arenaBytes < b.arenaBytes;
  return streamCycles(a) < streamCycles(b);
}

Result<Schedule> schedule(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
                          Ends ends) {
  CARINA_TRY(Variants variants, variantsOf(graph, machine, options, ends));
  const bool size = options.optimize == Optimize::Size;
  const auto bound = [](const std::unique_ptr<Variant>& variant) { return variant->prepared->arenaBound(); };
  const auto lowerBound = [&](const auto& a, const auto& b) { return bound(a) < bound(b); };
  const int64_t least = bound(*std::min_element(variants.begin(), variants.end(), lowerBound));
  // For the smallest arena, the most promising one first; within a limit, the usual one.
  if (size) std::stable_sort(variants.begin(), variants.end(), lowerBound);
  std::optional<Schedule> best;
  std::optional<Error> error;
  for (const auto& variant : variants) {
    if (best && size && bound(variant) - bound(variant) / kSameArena >= best->arenaBytes) break;
    // Enough memory for any of them.
    if (best && !size && best->arenaBound + best->arenaBound / 4 < options.arenaLimit) break;
    Scheduler& prepared = *variant->prepared;
    const Options& own = variant->options;
    Result<Schedule> found = own.known && !own.known->empty()
                                 ? sharedOrAlone(prepared, graph, machine, own, ends)
                                 : bestOf(prepared, graph, machine, own, ends);
    if (!found.ok()) {
      if (!error || bound(variant) == least) error = std::move(found).error();
      continue;
    }
    const bool better =
        !best || (size ? isSmaller(*found, *best) : streamCycles(*found) < streamCycles(*best));
    if (!better) continue;
    best = std::move(*found);
    best->isUsual = own.padsBricks && !own.freesMapsEarly;
  }
  if (!best) return std::move(*error);
  best->arenaBound = std::min(best->arenaBound, least);
  return std::move(*best);
}

Result<npu::Cycles> expectedCycles(const ir::Graph& graph, const npu::Machine& machine,
                                   const Options& options) {
  Options quick = options;
  quick.effort = 1;
  quick.optimize = Optimize::Performance;
  Scheduler prepared(graph, machine, quick, Ends::InArena);
  CARINA_RETURN_IF_ERROR(prepared.prepare());
  return expectedCycles(prepared, machine, quick);
}

Result<int64_t> arenaBound(const ir::Graph& graph, const npu::Machine& machine, const Options& options,
                           RollingMaps rolling) {
  Options smallest = options;
  smallest.optimize = Optimize::Size;
  Scheduler prepared(graph, machine, smallest, Ends::InArena);
  CARINA_RETURN_IF_ERROR(prepared.prepare());
  return prepared.arenaBound(rolling);
}

}  // namespace carina::compiler
