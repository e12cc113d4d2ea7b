// SPDX-License-Identifier: Apache-2.0
#include "compiler/search/limit_search.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "base/parallel.hpp"
#include "compiler/emit/emit.hpp"
#include "compiler/search/scheduler.hpp"

namespace carina::compiler {

std::vector<int64_t> shortStaging(const Scheduler& prepared, int64_t fast) {
  std::vector<int64_t> sizes;
  for (int64_t size = kWholeStagingBytes / 3; size >= 1024; size /= 2) {
    if (size < fast && size < prepared.largestWeights()) sizes.push_back(size);
  }
  return sizes;
}

namespace {

/// Schedules that are planned again with less of a dedicated cache, at most, and steps of each.
constexpr size_t kTighterTries = 4;
constexpr int kTighterSteps = 4;

/// Schedules that are planned again with less memory for weights than they take, at most, and steps of each.
constexpr size_t kLighterStarts = 3;
constexpr int kLighterSteps = 4;

/// Schedules that are planned again as if transfers and kernels took turns, at most.
constexpr size_t kBesideStarts = 8;

/// Passes that these have in all, at most, but for one of each: a network of up to 256 has all of them.
constexpr size_t kMostPlannedPasses = 2048;

/// Schedules that are planned again with the sizes that their weights have, at most.
constexpr size_t kLargerTries = 4;

/// Tries limits on fast memory and keeps the schedule with the fewest cycles. Limits that a smaller memory
/// would be tried with are tried with a larger one too, so that more memory never costs cycles.
class Search {
 public:
  Search(const Scheduler& prepared, const npu::Machine& machine, const Options& options, int64_t arenaLimit,
         int64_t aim)
      : prepared_(prepared), machine_(machine), options_(options), arenaLimit_(arenaLimit), aim_(aim) {}

  Result<Schedule> run() {
    std::vector<Try> results = prepareTries();
    const bool compare = results.size() > 1;
    Best best;
    if (compare && machine_.memory.spilling()) {
      measureTogether(results, best);
      tightenFailed(results, best);
    } else {
      parallelForIf(prepared_.worthThreads(), results.size(), [&](size_t i) {
        if (!results[i].same) best.offer(*this, results, i, measured(results[i], compare));
      });
      for (Try& result : results) {
        if (result.same) result.takeCosts(results[*result.same]);
      }
    }
    std::vector<Try*> order;
    order.reserve(results.size());
    for (Try& result : results) order.push_back(&result);
    std::stable_sort(order.begin(), order.end(),
                     [this](const Try* a, const Try* b) { return comesBefore(*a, *b); });
    std::deque<Try> lighter, chosen;
    std::optional<Try> instead;
    if (compare && !order.front()->error) {
      lighten(order, lighter, best);
      chosen = chooseForEfforts(order, best, instead);
    }
    if (instead) order.insert(order.begin(), &*instead);
    for (Try& choice : chosen) order.insert(order.begin(), &choice);
    // What was expected of a schedule may be off by a percent: with much effort the best few are completed.
    const size_t lower = chosen.empty() ? 0 : chosen.size() - 1;
    size_t most = lower + (options_.effort == 3 && compare ? 6 : 1);
    std::optional<Schedule> fastest;
    Try found;
    // What less effort chooses is completed first: nothing that takes more cycles replaces it, but for the
    // half percent that is worth less memory, which --effort 3 does not give, either.
    std::optional<npu::Cycles> ceiling;
    size_t completed = 0;
    const auto offer = [&](Schedule schedule) {
      Try exact = costsOf(schedule);
      if (fastest && ((ceiling && exact.cycles > *ceiling) || !better(exact, found))) return;
      found = std::move(exact);
      fastest = std::move(schedule);
    };
    std::deque<Try> tighter;
    std::vector<const Try*> larger;  // planned again with the sizes of their weights
    for (size_t i = 0; i < order.size(); ++i) {
      Try& result = *order[i];
      // Encoded weights may be a little larger than was to be expected.
      if (result.error) break;
      auto scheduler = i == lower ? std::move(best.scheduler) : nullptr;
      if (!scheduler) {
        Try again(result.limits, result.plan);
        scheduler = measured(again, compare);
      }
      if (most > 1) scheduler->keepEncoded();
      auto schedule = scheduler->finish();
      if (!schedule.ok()) {
        result.error.emplace(std::move(schedule).error());
        const bool alike = std::any_of(larger.begin(), larger.end(), [&](const Try* t) {
          return t->cycles == result.cycles && t->bytes == result.bytes;
        });
        if (!fastest && !alike && larger.size() < kLargerTries) {
          larger.push_back(&result);
          if (auto again = withSizesOf(*scheduler, result.limits)) offer(std::move(*again));
        }
        if (tighter.size() < kTighterTries && tightens(result.limits)) {
          tighter.emplace_back(result.limits);
          if (tighten(tighter.back())) {
            const auto worse = [&](const Try* t) { return comesBefore(tighter.back(), *t); };
            const auto next = static_cast<std::ptrdiff_t>(std::max(i, lower) + 1);
            order.insert(std::find_if(order.begin() + next, order.end(), worse), &tighter.back());
          }
        }
        continue;
      }
      // It is not what was to be expected.
      if (i == lower && instead && streamCycles(*schedule) > instead->cycles) most = std::max(most, i + 2);
      if (most == 1 && !fastest) return schedule;
      offer(std::move(*schedule));
      if (i < lower) ceiling = options_.effort == 3 ? found.cycles : found.cycles + found.cycles / 200;
      if (++completed == most) break;
    }
    if (fastest) return std::move(*fastest);
    return std::move(*order.front()->error);
  }

  /// Whether a schedule takes fewer cycles than another, and is better.
  bool isFaster(const Schedule& a, const Schedule& b) const {
    const Try first = costsOf(a), second = costsOf(b);
    return first.cycles < second.cycles && better(first, second);
  }

 private:
  struct Try {
    Try() = default;
    explicit Try(const Limits& l, std::shared_ptr<const WeightPlan> p = nullptr)
        : limits(l), plan(std::move(p)) {}
    Limits limits;
    std::shared_ptr<const WeightPlan> plan;  // where planned_ has the rest
    std::optional<Error> error;
    npu::Cycles cycles = 0;
    int64_t bytes = 0;
    int64_t arena = 0;           // behind a cache
    int effort = 1;              // the least that tries it
    std::optional<size_t> same;  // an earlier one with the same plan of weights

    /// Of one that comes to the same.
    void takeCosts(const Try& other) {
      error = other.error;
      cycles = other.cycles;
      bytes = other.bytes;
      arena = other.arena;
    }
  };

  Try costsOf(const Schedule& schedule) const {
    Try exact;
    exact.cycles = streamCycles(schedule);
    exact.bytes = machine_.memory.spilling() ? schedule.cacheBytes : schedule.arenaBytes;
    exact.arena = machine_.memory.spilling() ? schedule.arenaBytes : 0;
    return exact;
  }

  /// The scheduler of the best try so far: a schedule is as large as the network, and there are many tries.
  struct Best {
    std::mutex mutex;
    size_t index = 0;
    std::unique_ptr<Scheduler> scheduler;

    void offer(const Search& search, const std::vector<Try>& results, size_t i,
               std::unique_ptr<Scheduler> offered) {
      const std::lock_guard lock(mutex);
      if (results[i].error) return;
      if (scheduler && !search.comesBefore(results[i], results[index]) &&
          (index < i || search.comesBefore(results[index], results[i])))
        return;
      std::swap(scheduler, offered);
      index = i;
    }
  };

  /// All limits to try, with those that less effort tries.
  std::vector<Try> allTries() const {
    std::vector<Try> all;
    for (int effort = options_.effort; effort > 0; --effort) {
      for (const Limits& limits : tries(effort)) {
        auto same = std::find_if(all.begin(), all.end(), [&](const Try& t) { return t.limits == limits; });
        if (same == all.end()) same = all.insert(same, Try(limits));
        same->effort = effort;
      }
    }
    return all;
  }

  /// Where nothing spills limits differ in little but the room for weights: what does not depend on it is
  /// chosen once, and of those that come to the same plan of weights the first one of each effort stays.
  std::vector<Try> prepareTries() {
    std::vector<Try> all = allTries();
    if (all.size() < 2 || machine_.memory.spilling()) return all;
    const auto sharesChoices = [](const Try& t) { return t.limits.wholeStaging == kWholeStagingBytes; };
    planned_ = std::make_unique<Scheduler>(prepared_);
    // An error comes again, and is reported, when the limits are tried.
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

  /// Tries with the same places, in their order.
  struct Alike {
    Limits limits;  // of one of them, without cascades where there is one: it gets there sooner
    Places places;
    std::vector<size_t> tries;
  };

  /// Tries that end with an error by then get it.
  std::vector<Alike> alike(std::vector<Try>& results) const {
    const auto forPlaces = [](Limits limits) {
      limits.fast = 0;
      limits.copies = false;
      limits.sharing = PortSharing::Waiting;
      return limits;
    };
    std::vector<Alike> all;
    for (size_t i = 0; i < results.size(); ++i) {
      const Limits limits = forPlaces(results[i].limits);
      auto same = std::find_if(all.begin(), all.end(), [&](const Alike& a) { return a.limits == limits; });
      if (same == all.end()) same = all.insert(same, Alike{limits, {}, {}});
      same->tries.push_back(i);
    }
    parallelForIf(prepared_.worthThreads(), all.size(), [&](size_t a) {
      Scheduler scheduler(prepared_);
      if (const Status status = scheduler.choosePlaces(all[a].limits); status.ok()) {
        all[a].places = scheduler.places();
      } else {
        for (const size_t i : std::exchange(all[a].tries, {})) results[i].error = status.error();
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

  /// Measures all tries at a network with a dedicated cache, of those that come to the same schedule one.
  void measureTogether(std::vector<Try>& results, Best& best) const {
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
      std::vector<size_t> first(tries.size());  // with the same plan
      for (size_t t = 0; t < tries.size(); ++t) {
        while (plans[first[t]].uses != plans[t].uses) ++first[t];
      }
      parallelForIf(prepared_.worthThreads(), tries.size(), [&](size_t t) {
        if (first[t] != t) return;
        auto scheduler = std::make_unique<Scheduler>(chosen);
        scheduler->useWeightPaths(results[tries[t]].limits, plans[t]);
        scheduler->forgetWeightPaths();
        measureChosen(*scheduler, results[tries[t]]);
        best.offer(*this, results, tries[t], std::move(scheduler));
      });
      for (size_t t = 0; t < tries.size(); ++t) {
        if (first[t] == t) continue;
        results[tries[t]].takeCosts(results[tries[first[t]]]);
      }
    });
  }

  std::unique_ptr<Scheduler> measured(Try& result, bool compare) const {
    auto scheduler = std::make_unique<Scheduler>(result.plan ? *planned_ : prepared_);
    measure(*scheduler, result, compare);
    return scheduler;
  }

  void measure(Scheduler& scheduler, Try& result, bool compare) const {
    if (result.plan) {
      scheduler.useWeightPaths(result.limits, *result.plan);
    } else if (Status status = scheduler.choose(result.limits); !status.ok()) {
      result.error = std::move(status).error();
      return;
    }
    if (compare) measureChosen(scheduler, result);
  }

  static void measureChosen(Scheduler& scheduler, Try& result) {
    auto cycles = scheduler.expectedCycles();
    if (!cycles.ok()) {
      result.error = std::move(cycles).error();
      return;
    }
    result.cycles = *cycles;
    result.bytes = scheduler.fastBytes();
    result.arena = scheduler.arenaBehind();
  }

  /// How many of `most` schedules to plan again.
  size_t starts(size_t most) const {
    return std::clamp<size_t>(kMostPlannedPasses / std::max<size_t>(prepared_.passes(), 1), 1, most);
  }

  /// The first tries, at most so many, without those that come to the same maps in a cache by other limits.
  static std::vector<const Try*> different(const std::vector<Try*>& order, size_t most) {
    const auto alike = [](const Try& a, const Try& b) {
      Limits limits = a.limits;
      limits.maps = b.limits.maps;
      limits.cascades = b.limits.cascades;
      limits.cascadesInCache = b.limits.cascadesInCache;
      limits.wholeAtMost = b.limits.wholeAtMost;
      return limits == b.limits && a.cycles == b.cycles && a.bytes == b.bytes;
    };
    std::vector<const Try*> first;
    for (const Try* t : order) {
      if (first.size() == most) break;
      if (std::none_of(first.begin(), first.end(), [&](const Try* other) { return alike(*other, *t); }))
        first.push_back(t);
    }
    return first;
  }

  /// What a plan of weights takes as a whole is no smooth function of the memory that it may have: the last
  /// slice that found room may cost more than it saves. The best few are planned again with less than they
  /// take, as long as that helps. What is better than all comes first in the order; `lighter` keeps it.
  void lighten(std::vector<Try*>& order, std::deque<Try>& lighter, Best& best) const {
    if (options_.effort < 2) return;
    const npu::Cycles cycles = order.front()->cycles;
    for (const Try* start : different(order, starts(kLighterStarts))) {
      if (start->error || start->cycles * 100 > cycles * 105) break;
      Try last = *start;
      std::unique_ptr<Scheduler> scheduler;
      for (int step = 0; step < kLighterSteps; ++step) {
        Try next(last.limits);
        auto planned = planLess(next, last);
        if (!planned) break;
        scheduler = std::move(planned);
        last = std::move(next);
      }
      if (!scheduler || !comesBefore(last, *order.front())) continue;
      placeFirst(std::move(last), std::move(scheduler), order, lighter, best);
      if (!prepared_.mayCopyInputs()) continue;
      // With inputs read where they lie instead of copied, or the other way round: what safer() looks for.
      Try other(order.front()->limits);
      other.limits.copyInputs = !other.limits.copyInputs;
      other.effort = 2;
      scheduler = measured(other, true);
      if (comesBefore(other, *order.front())) {
        placeFirst(std::move(other), std::move(scheduler), order, lighter, best);
      } else {
        lighter.push_back(std::move(other));
        order.push_back(&lighter.back());
      }
    }
    const auto better = [this](const Try* a, const Try* b) { return comesBefore(*a, *b); };
    std::stable_sort(order.begin() + 1, order.end(), better);
  }

  /// A try that is better than all others, with its scheduler.
  static void placeFirst(Try first, std::unique_ptr<Scheduler> scheduler, std::vector<Try*>& order,
                         std::deque<Try>& lighter, Best& best) {
    best.scheduler = std::move(scheduler);
    lighter.push_back(std::move(first));
    order.insert(order.begin(), &lighter.back());
  }

  /// `next` with less memory than `last` takes; null where that takes no fewer cycles.
  std::unique_ptr<Scheduler> planLess(Try& next, const Try& last) const {
    next.limits.fast = std::min(last.bytes, last.limits.fast) - 1;
    next.effort = 2;
    if (next.limits.fast <= 0) return nullptr;
    if (last.plan) {
      next.plan = std::make_shared<WeightPlan>(planned_->planWeightPaths(next.limits));
      if (next.plan->uses == last.plan->uses) return nullptr;
    }
    auto scheduler = measured(next, true);
    return next.error || next.cycles >= last.cycles ? nullptr : std::move(scheduler);
  }

  /// What each effort up to the one that is asked for would complete, the greatest first. `best` has the
  /// scheduler of the first try, then that of the first choice; tries that are chosen leave the order.
  /// `instead`: what comes next, where the first choice depends on when transfers end.
  std::deque<Try> chooseForEfforts(std::vector<Try*>& order, Best& best, std::optional<Try>& instead) const {
    std::deque<Try> chosen;
    Beside beside;
    const Try* const first = order.front();
    Try* const safest = safer(order, order.front(), best.scheduler);
    for (int effort = 1; effort <= options_.effort; ++effort) {
      std::vector<Try*> tried;
      std::copy_if(order.begin(), order.end(), std::back_inserter(tried),
                   [&](const Try* t) { return t->effort <= effort && !t->error; });
      if (tried.empty()) continue;
      std::unique_ptr<Scheduler> scheduler;
      Try* safe = tried.front();
      if (tried.size() > 1) {
        safe = safe == first ? safest : safer(order, safe, scheduler);
        for (const PortSharing sharing : {PortSharing::Turns, PortSharing::Gaps}) {
          planBeside(*safe, sharing, beside);
          for (const Try* t : different(tried, starts(kBesideStarts))) planBeside(*t, sharing, beside);
        }
      }
      const bool bold = tried.size() > 1 && beside.scheduler && comesBefore(beside.best, *safe) &&
                        isWorthDoubt(beside, *safe, safe == safest ? best.scheduler : scheduler);
      chosen.push_front(bold ? beside.best : *safe);
      if (effort < options_.effort || !bold) continue;
      best.scheduler = std::move(beside.scheduler);
      instead = *safe;
    }
    leaveClose(chosen);
    const auto leaves = [&](const Try* t) {
      return (t == first && t != safest) || (instead && instead->limits == t->limits) ||
             std::any_of(chosen.begin(), chosen.end(), [&](const Try& c) { return c.limits == t->limits; });
    };
    order.erase(std::remove_if(order.begin(), order.end(), leaves), order.end());
    return chosen;
  }

  /// Choices of less effort that may turn out to be the better ones.
  void leaveClose(std::deque<Try>& chosen) const {
    constexpr int kPercent = 1;  // that expectations err
    const Try& last = chosen.front();
    std::deque<Try> close;
    for (const Try& choice : chosen) {
      const bool exact = options_.effort == 3;
      const bool known = std::any_of(close.begin(), close.end(), [&](const Try& other) {
        return exact ? other.limits == choice.limits
                     : other.cycles == choice.cycles && other.bytes == choice.bytes;
      });
      const bool slow = !exact && choice.cycles * 100 > last.cycles * (100 + kPercent);
      if (!known && !slow) close.push_back(choice);
    }
    chosen = std::move(close);
  }

  /// An input that is read where it lies costs little by the calibrated model, and much where short accesses
  /// take whole bursts, which measurements do not rule out everywhere. Of two tries that differ in nothing
  /// else, the one that is at most 1 % slower and depends less on it takes the place of the best, and its
  /// scheduler that of the best (null: to be made).
  Try* safer(const std::vector<Try*>& order, Try* front, std::unique_ptr<Scheduler>& scheduler) const {
    if (!prepared_.mayCopyInputs()) return front;
    Limits limits = front->limits;
    limits.copyInputs = !limits.copyInputs;
    const auto other =
        std::find_if(order.begin(), order.end(), [&](const Try* t) { return t->limits == limits; });
    if (other == order.end() || (*other)->error || (*other)->cycles * 100 > front->cycles * 101) return front;
    if (!scheduler) {
      Try again(front->limits);
      scheduler = measured(again, true);
    }
    Try again(limits);
    auto safe = measured(again, true);
    if (again.error || safe->cyclesInDoubt() >= scheduler->cyclesInDoubt()) return front;
    scheduler = std::move(safe);
    return *other;
  }

  /// Schedules planned as if transfers and kernels took turns, and the best of them.
  struct Beside {
    std::vector<Limits> known;
    Try best;
    std::unique_ptr<Scheduler> scheduler;
  };

  /// Weights that arrive while kernels use the same port wait for them at worst, and every try is planned for
  /// that: once more as if they took turns, and once as if they had what kernels leave of it.
  void planBeside(const Try& waiting, PortSharing sharing, Beside& beside) const {
    Try other(waiting.limits);
    other.limits.sharing = sharing;
    if (std::find(beside.known.begin(), beside.known.end(), other.limits) != beside.known.end()) return;
    beside.known.push_back(other.limits);
    if (waiting.plan) {
      other.plan = std::make_shared<WeightPlan>(planned_->planWeightPaths(other.limits));
      if (other.plan->uses == waiting.plan->uses) return;
    }
    auto scheduler = measured(other, true);
    if (other.error || (beside.scheduler && !comesBefore(other, beside.best))) return;
    beside.best = std::move(other);
    beside.scheduler = std::move(scheduler);
  }

  /// Whether a schedule planned beside kernels takes over 1 % fewer cycles than the other, or no more where
  /// transfers have only what kernels leave. `other`: its scheduler, or null.
  bool isWorthDoubt(const Beside& beside, const Try& safe, std::unique_ptr<Scheduler>& other) const {
    if (beside.best.cycles * 101 < safe.cycles * 100) return true;
    if (!other) {
      Try again(safe.limits, safe.plan);
      other = measured(again, true);
    }
    return beside.scheduler->cyclesIfTransfersWait() <= other->cyclesIfTransfersWait();
  }

  /// A plan that fills a dedicated cache to the last byte has no room for weights that are larger than was to
  /// be expected: the one for the sizes that they have. Nothing when it does not fit either, or the arena
  /// not.
  std::optional<Schedule> withSizesOf(const Scheduler& unfinished, const Limits& limits) const {
    Scheduler scheduler = prepared_;
    if (!scheduler.expectSizesOf(unfinished.encodedPasses())) return std::nullopt;
    Try again(limits);
    measure(scheduler, again, true);
    if (again.error) return std::nullopt;
    auto schedule = scheduler.finish();
    if (!schedule.ok() || (arenaLimit_ > 0 && schedule->arenaBytes > arenaLimit_)) return std::nullopt;
    return std::move(*schedule);
  }

  /// Addresses may need a little more than the live bytes that are planned with. Cascades that find no place
  /// in a dedicated cache are planned again with less of it, a sixteenth at a time.
  bool tightens(const Limits& limits) const { return machine_.memory.spilling() && limits.cascadesInCache; }

  /// Null when none of a few steps has a schedule.
  std::unique_ptr<Scheduler> tighten(Try& result) const {
    const auto less = [](int64_t bytes) { return bytes / 16 * 15; };
    for (int step = 0; step < kTighterSteps; ++step) {
      Limits& limits = result.limits;
      limits.cascades = less(*limits.cascades);
      limits.maps = less(limits.maps);
      limits.fast = less(limits.fast);
      result.error.reset();
      auto scheduler = measured(result, true);
      if (!result.error) return scheduler;
    }
    return nullptr;
  }

  /// Of those that were to fill the whole cache; the smaller ones have one another.
  void tightenFailed(std::vector<Try>& results, Best& best) const {
    const int64_t cache = cacheLimit(machine_, options_);
    for (size_t i = 0, count = results.size(); i < count; ++i) {
      if (!results[i].error || results[i].limits.fast != cache || !tightens(results[i].limits)) continue;
      results.emplace_back(Limits(results[i].limits));
      results.back().effort = results[i].effort;
      auto scheduler = tighten(results.back());
      if (scheduler) best.offer(*this, results, results.size() - 1, std::move(scheduler));
    }
  }

  /// What can be scheduled at all, the better one first.
  bool comesBefore(const Try& a, const Try& b) const { return !a.error && (b.error || better(a, b)); }

  /// What fits the arena, or the part of a cache, that the user allows; then cycles. Without such a limit
  /// half a percent of them is not worth more memory: cycles count in such steps.
  bool better(const Try& a, const Try& b) const {
    const auto key = [this](const Try& t) {
      const bool spilling = machine_.memory.spilling();
      const int64_t most = aim_ > 0 || spilling ? aim_ : arenaLimit_;
      const bool fits =
          (most == 0 || t.bytes <= most) && (!spilling || arenaLimit_ == 0 || t.arena <= arenaLimit_);
      const double steps =
          std::log(static_cast<double>(std::max<npu::Cycles>(t.cycles, 1))) / std::log(1.005);
      const bool exact = spilling || most > 0;
      return std::tuple(!fits, exact ? static_cast<double>(t.cycles) : std::floor(steps), t.bytes, t.cycles);
    };
    return key(a) < key(b);
  }

  std::vector<Limits> tries(int effort) const {
    constexpr int64_t kKiB = 1024, kRoom = 48 * kKiB;  // for weights beside the largest maps
    std::vector<Limits> all;
    if (!machine_.memory.slowConstants()) {
      const int64_t fast = cacheLimit(machine_, options_);
      return {{std::nullopt, false, fast, fast, true, false, false, true}};
    }
    const bool spilling = machine_.memory.spilling();
    const int64_t least = prepared_.mapBytes();
    const int64_t cache = cacheLimit(machine_, options_);
    const int64_t most = spilling          ? cache
                         : arenaLimit_ > 0 ? std::max(arenaLimit_, least)
                                           : std::max(least + 2 * kRoom, cache);
    std::vector<int64_t> sizes;
    for (const int64_t size : {64, 128, 256, 384, 512, 1024, 2048, 4096}) {
      if (size * kKiB < most && (spilling || size * kKiB > least)) sizes.push_back(size * kKiB);
    }
    for (const int64_t size : {least, least + kRoom}) {
      if (!spilling && size < most) sizes.push_back(size);
    }
    // Addresses may need a little more than the live bytes that are planned with: less leaves them room.
    for (const int64_t eighths : {1, 2, 3, 4, 5, 6, 7}) {
      if (arenaLimit_ > 0 && !spilling && most > least) sizes.push_back(least + (most - least) / 8 * eighths);
    }
    sizes.push_back(most);
    // A cache is shared by maps and weights: how is worth a try more.
    if (quick(effort)) {
      sizes = spilling ? std::vector<int64_t>{most / 3, most * 2 / 3, most} : std::vector<int64_t>{most};
    }
    if (effort == 3) addBetween(sizes);
    std::sort(sizes.begin(), sizes.end());
    if (!spilling) {
      // Beyond what all maps and weights together take, a plan is the same whatever there is.
      const auto enough = std::lower_bound(sizes.begin(), sizes.end(), least + prepared_.allWeights());
      if (enough != sizes.end()) sizes.erase(enough + 1, sizes.end());
    }
    for (const int64_t size : sizes) {
      // Reading in place is planned with an estimate of its traffic: both ways are looked at.
      for (const bool copies : {false, true}) {
        if (copies && quick(effort)) continue;
        if (!spilling) {
          all.push_back({std::nullopt, false, 0, size, true, copies, false, true});
          // The only try is planned as the cycle model has it; of several, what depends less on it is
          // preferred.
          if (quick(effort)) all.back().sharing = PortSharing::Turns;
          continue;
        }
        for (const int64_t eighths : {4, 7, 8}) {
          if (copies && eighths == 8) continue;
          all.push_back({std::nullopt, false, size * eighths / 8, size, true, copies, false, true});
          if (eighths < 8 && !copies) addCascades(all, size * eighths / 8, size, size == most);
        }
      }
    }
    // What always fits: nothing in the cache.
    if (spilling) all.push_back({std::nullopt, false, 0, 0, true, false, false, true});
    if (prepared_.mayCopyInputs()) {
      for (size_t i = 0, count = all.size(); i < count; ++i) {
        Limits without = all[i];
        without.copyInputs = false;
        all.push_back(without);
      }
    }
    if (arenaLimit_ > 0 || options_.cacheLimit > 0 || effort == 3) addForShortMemory(all, most);
    return all;
  }

  /// Cascades for so many bytes of a cache's `size`. `most`: maps that are larger than half or a quarter of
  /// it may lie behind it instead, which leaves room for taller stripes.
  void addCascades(std::vector<Limits>& all, int64_t bytes, int64_t size, bool most) const {
    Limits limits{bytes, true, size, size, true, false, false, true};
    all.push_back(limits);
    if (!most) return;
    for (const int64_t parts : {2, 4}) {
      limits.wholeAtMost = size / parts;
      if (prepared_.largestMap() > limits.wholeAtMost) all.push_back(limits);
    }
  }

  /// Few tries. Not where the user limits memory: what fits then may be one of the others.
  bool quick(int effort) const { return effort == 1 && arenaLimit_ == 0 && options_.cacheLimit == 0; }

  /// Three more sizes between every two.
  static void addBetween(std::vector<int64_t>& sizes) {
    std::sort(sizes.begin(), sizes.end());
    for (size_t i = 1, count = sizes.size(); i < count; ++i) {
      for (const int64_t quarters : {1, 2, 3}) {
        const int64_t size = sizes[i - 1] + (sizes[i] - sizes[i - 1]) / 4 * quarters;
        if (size > sizes[i - 1] && size < sizes[i]) sizes.push_back(size);
      }
    }
  }

  /// Thinner slices of staged weights; in a small cache all maps that fit, and weights planned with less
  /// than there is.
  void addForShortMemory(std::vector<Limits>& all, int64_t most) const {
    const size_t count = all.size();
    for (size_t i = 0; i < count; ++i) {
      for (const int64_t staging : shortStaging(prepared_, all[i].fast)) {
        all.push_back(all[i]);
        all.back().wholeStaging = staging;
      }
    }
    if (!machine_.memory.spilling()) return;
    const int64_t maps = std::min(prepared_.cacheableBytes(), most);
    for (const int64_t eighths : {1, 2, 3, 4, 5, 6, 7}) {
      for (const bool copies : {false, true}) {
        const int64_t fast = maps + (most - maps) / 8 * eighths;
        all.push_back({std::nullopt, false, most, fast, true, copies, false, true});
        all.push_back({std::nullopt, false, most, fast, true, copies, false, false});
      }
    }
  }

  const Scheduler& prepared_;
  std::unique_ptr<Scheduler> planned_;  // but for the weights
  const npu::Machine& machine_;
  const Options& options_;
  const int64_t arenaLimit_, aim_;
};

}  // namespace

Result<Schedule> fastestSchedule(const Scheduler& prepared, const npu::Machine& machine,
                                 const Options& options, int64_t arenaLimit, int64_t aim) {
  Search search(prepared, machine, options, arenaLimit, aim);
  Result<Schedule> found = search.run();
  if (options.effort < 3 || !machine.memory.slowConstants() || !found.ok()) return found;
  // Once more with weights as large as they are.
  Scheduler exact = prepared;
  if (!exact.expectSizesOf(found->passes)) return found;
  Options normal = options;
  normal.effort = 2;
  Result<Schedule> again = Search(exact, machine, normal, arenaLimit, aim).run();
  return again.ok() && search.isFaster(*again, *found) ? std::move(again) : std::move(found);
}

}  // namespace carina::compiler
