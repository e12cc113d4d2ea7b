// SPDX-License-Identifier: Apache-2.0
#include "compiler/search/limit_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "compiler/emit/emit.hpp"
#include "compiler/search/limits_to_try.hpp"
#include "compiler/search/scheduler.hpp"
#include "compiler/search/try_measurer.hpp"

namespace carina::compiler {

namespace {

/// At most this many schedules are replanned with less of a dedicated cache, in at most this many sixteenths.
constexpr size_t kTighterTries = 4;
constexpr int kTighterSteps = 4;

/// At most this many schedules are replanned with less memory for weights than they take, in so many steps.
constexpr size_t kLighterStarts = 3;
constexpr int kLighterSteps = 4;

/// At most this many schedules are replanned with transfers during several groups, or as if transfers and
/// kernels took turns.
constexpr size_t kLongPieceStarts = 4, kSharedPortStarts = 8;

/// Upper bound on the total passes of these replanned schedules, apart from one of each kind: networks of up
/// to 256 passes get all of them.
constexpr size_t kMaxPlannedPasses = 2048;

/// At most this many schedules that could not be completed are replanned with the actual sizes of their
/// weights.
constexpr size_t kLargerTries = 4;

/// Tries limits on fast memory and keeps the schedule with the fewest cycles. Limits that would be tried for
/// a smaller memory are also tried for a larger one, so that more memory never costs cycles.
class Search {
 public:
  Search(const Scheduler& prepared, const npu::Machine& machine, const Options& options, int64_t arenaLimit,
         int64_t aim)
      : prepared_(prepared),
        measurer_(prepared, machine),
        machine_(machine),
        options_(options),
        arenaLimit_(arenaLimit),
        aim_(aim) {}

  Result<Schedule> run() {
    std::vector<Try> results = measurer_.prepare(allTries());
    const bool compare = results.size() > 1;
    Best best;
    measureAll(results, best, compare);
    for (const Try& result : results) {
      if (!result.error && (fewest_ == 0 || result.cycles < fewest_)) fewest_ = result.cycles;
    }
    std::vector<Try*> order;
    order.reserve(results.size());
    for (Try& result : results) order.push_back(&result);
    std::stable_sort(order.begin(), order.end(),
                     [this](const Try* a, const Try* b) { return comesBefore(*a, *b); });
    if (compare && !order.front()->error && order.front() != &results[best.index]) {
      Try again(order.front()->limits, order.front()->plan);
      best.scheduler = measurer_.measured(again);
    }
    std::deque<Try> lighter, chosen;
    std::optional<Try> instead;
    if (compare && !order.front()->error) {
      replanWithout(order, lighter, best);
      replanLongPieces(order, lighter, best);
      replanTighter(order, lighter, best);
      lighten(order, lighter, best);
      chosen = chooseForEfforts(order, best, instead);
    }
    if (instead) order.insert(order.begin(), &*instead);
    for (Try& choice : chosen) order.insert(order.begin(), &choice);
    return complete(order, chosen.size(), instead ? std::optional(instead->cycles) : std::nullopt, best);
  }

  /// Expected cycles of the best try that may use all of the fast memory.
  Result<npu::Cycles> expect() {
    std::vector<Try> results = measurer_.prepare(allTries());
    int64_t most = 0;
    for (const Try& result : results) most = std::max(most, result.limits.fast);
    std::erase_if(results, [&](const Try& t) { return t.limits.fast < most; });
    Best best;
    measureAll(results, best, true);
    const auto first = std::min_element(results.begin(), results.end(),
                                        [this](const Try& a, const Try& b) { return comesBefore(a, b); });
    if (first->error) return *first->error;
    return first->cycles;
  }

  /// Whether `a` takes fewer cycles than `b` and ranks higher.
  bool isFaster(const Schedule& a, const Schedule& b) const {
    const Try first = costsOf(a), second = costsOf(b);
    return first.cycles < second.cycles && better(first, second);
  }

 private:
  Try costsOf(const Schedule& schedule) const {
    Try exact;
    exact.cycles = streamCycles(schedule);
    exact.bytes = machine_.memory.spilling() ? schedule.cacheBytes : schedule.arenaBytes;
    exact.arena = machine_.memory.spilling() ? schedule.arenaBytes : 0;
    return exact;
  }

  /// The scheduler of the best try so far. Only one is kept: a schedule is as large as the network, and there
  /// are many tries.
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

  /// Completes tries in order until enough are completed, and returns the fastest. The first `choices` are
  /// those of each effort, of which `best` holds the scheduler of the last one. `alternative`: the cycles
  /// expected of the try after these, if it is to be completed where it may be faster.
  Result<Schedule> complete(std::vector<Try*>& order, size_t choices,
                            const std::optional<npu::Cycles>& alternative, Best& best) const {
    const bool compare = order.size() > 1;
    // Expected cycles may be off by a percent: at high effort the best few schedules are completed.
    const size_t lower = choices == 0 ? 0 : choices - 1;
    size_t most = lower + (options_.effort == 3 && compare ? 6 : 1);
    std::optional<Schedule> fastest;
    Try found;
    // The choices of lower efforts are completed first. Nothing that takes more cycles replaces them, except
    // for the half percent that is worth less memory; --effort 3 does not concede that either.
    std::optional<npu::Cycles> ceiling;
    std::deque<Try> tighter;
    std::vector<const Try*> failed;
    size_t replanned = 0;  // of those that failed
    for (size_t i = 0, completed = 0;; ++i) {
      for (; i > lower && replanned < failed.size(); ++replanned)
        insertTighter(*failed[replanned], order, i, tighter);
      if (i == order.size()) break;
      Try& result = *order[i];
      if (result.error) break;
      if (failsLike(failed, result)) continue;
      auto scheduler = i == lower ? std::move(best.scheduler) : nullptr;
      if (!scheduler) {
        Try again(result.limits, result.plan);
        scheduler = measurer_.measured(again, compare);
      }
      if (most > 1) scheduler->keepEncoded();
      auto schedule = scheduler->finish();
      if (!schedule.ok()) {
        // Encoded weights may be slightly larger than expected.
        result.error.emplace(std::move(schedule).error());
        failed.push_back(&result);
        schedule = withSizesOf(*scheduler, result, failed.size());
        if (!schedule.ok()) continue;
      }
      // Slower than the alternative is expected to be: complete that as well.
      if (i == lower && alternative && streamCycles(*schedule) > *alternative) most = std::max(most, i + 2);
      if (most == 1) return schedule;
      if (Try exact = costsOf(*schedule);
          !fastest || ((!ceiling || exact.cycles <= *ceiling) && better(exact, found))) {
        found = std::move(exact);
        fastest = std::move(*schedule);
      }
      if (i < lower) ceiling = options_.effort == 3 ? found.cycles : found.cycles + found.cycles / 200;
      if (++completed == most) break;
    }
    if (fastest) return std::move(*fastest);
    return std::move(*order.front()->error);
  }

  /// Whether a try with the same costs, and thus probably the same plan, could not be completed.
  static bool failsLike(const std::vector<const Try*>& failed, const Try& result) {
    return std::any_of(failed.begin(), failed.end(), [&](const Try* t) {
      return t->cycles == result.cycles && t->bytes == result.bytes && t->arena == result.arena;
    });
  }

  /// All limits to try, including those of lower efforts.
  std::vector<Try> allTries() const {
    std::vector<Try> all;
    for (int effort = options_.effort; effort > 0; --effort) {
      for (const Limits& limits : limitsToTry(prepared_, machine_, options_, arenaLimit_, effort)) {
        auto same = std::find_if(all.begin(), all.end(), [&](const Try& t) { return t.limits == limits; });
        if (same == all.end()) same = all.insert(same, Try(limits));
        same->effort = effort;
      }
    }
    return all;
  }

  /// Measures all tries, if they are to be compared, and keeps the scheduler of the best one.
  void measureAll(std::vector<Try>& results, Best& best, bool compare) const {
    measurer_.measureAll(results, compare, [&](size_t i, std::unique_ptr<Scheduler> scheduler) {
      best.offer(*this, results, i, std::move(scheduler));
    });
    if (compare && machine_.memory.spilling()) tightenFailed(results, best);
  }

  /// How many of at most `most` schedules to replan.
  size_t starts(size_t most) const {
    return std::clamp<size_t>(kMaxPlannedPasses / std::max<size_t>(prepared_.passes(), 1), 1, most);
  }

  /// The first tries, at most `most`, without those that give the same cached maps under other limits.
  static std::vector<const Try*> different(const std::vector<Try*>& order, size_t most) {
    const auto alike = [](const Try& a, const Try& b) {
      Limits limits = a.limits;
      limits.maps = b.limits.maps;
      limits.cascades = b.limits.cascades;
      limits.cascadesInCache = b.limits.cascadesInCache;
      limits.maxCachedMapBytes = b.limits.maxCachedMapBytes;
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

  /// The cost of a weight plan is not a smooth function of the memory available to it: the last slice that
  /// fit may cost more than it saves. The best few tries are replanned with less memory than they take for as
  /// long as that helps. One that beats all others moves to the front of the order; `lighter` owns it.
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
      // The same with inputs read in place instead of copied, or vice versa, for safer() to find.
      Try other(order.front()->limits);
      other.limits.copyInputs = !other.limits.copyInputs;
      other.effort = 2;
      scheduler = measurer_.measured(other);
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

  /// Repeats the best try without what is not always better: linear layers' maps count as often as they are
  /// read when it is decided which maps are cached, and cascades hold rows of maps that are read in parts.
  void replanWithout(std::vector<Try*>& order, std::deque<Try>& lighter, Best& best) const {
    if (!machine_.memory.spilling()) return;
    const auto replan = [&](const auto& change) {
      Try other(order.front()->limits);
      change(other.limits);
      other.effort = order.front()->effort;
      auto scheduler = measurer_.measured(other);
      if (comesBefore(other, *order.front()))
        placeFirst(std::move(other), std::move(scheduler), order, lighter, best);
    };
    if (prepared_.hasLinearLayers()) replan([](Limits& limits) { limits.countReads = false; });
    if (order.front()->limits.cascades && prepared_.hasParts())
      replan([](Limits& limits) { limits.rolling = RollingMaps::Whole; });
  }

  /// Where groups are too short for weights to arrive during one of them: the best few tries are repeated
  /// with transfers that take longer. Expected cycles may be off by a percent, so it has to save more.
  void replanLongPieces(std::vector<Try*>& order, std::deque<Try>& lighter, Best& best) const {
    for (const Try* start : different(order, starts(kLongPieceStarts))) {
      if (start->error) break;
      Try other;
      auto scheduler = measurer_.withLongPieces(other, *start);
      if (scheduler && comesBefore(other, *order.front()) &&
          savesAPercent(other.cycles, order.front()->cycles))
        placeFirst(std::move(other), std::move(scheduler), order, lighter, best);
    }
  }

  /// Less for maps leaves more for weights: the best try is repeated with a sixteenth less of everything.
  void replanTighter(std::vector<Try*>& order, std::deque<Try>& lighter, Best& best) const {
    if (!machine_.memory.spilling() || options_.effort < 2) return;
    Try other(order.front()->limits);
    other.effort = 2;
    auto scheduler = tightened(other);
    if (comesBefore(other, *order.front()))
      placeFirst(std::move(other), std::move(scheduler), order, lighter, best);
  }

  /// Puts a try that is better than all others first, with its scheduler.
  static void placeFirst(Try first, std::unique_ptr<Scheduler> scheduler, std::vector<Try*>& order,
                         std::deque<Try>& lighter, Best& best) {
    best.scheduler = std::move(scheduler);
    lighter.push_back(std::move(first));
    order.insert(order.begin(), &lighter.back());
  }

  /// Plans `next` with less memory than `last` takes; null if that does not take fewer cycles.
  std::unique_ptr<Scheduler> planLess(Try& next, const Try& last) const {
    next.limits.fast = std::min(last.bytes, last.limits.fast) - 1;
    next.effort = 2;
    if (next.limits.fast <= 0) return nullptr;
    auto scheduler = measurer_.replanned(next, last);
    return next.error || next.cycles >= last.cycles ? nullptr : std::move(scheduler);
  }

  /// The try that each effort up to the requested one would complete, highest effort first. `best` holds the
  /// scheduler of the first try, and afterwards that of the first choice; chosen tries are removed from the
  /// order. `instead`: the alternative, if the first choice depends on when transfers end.
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
          planWithSharing(*safe, sharing, beside);
          for (const Try* t : different(tried, starts(kSharedPortStarts)))
            planWithSharing(*t, sharing, beside);
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

  /// Drops duplicates and, below effort 3, choices of lower efforts that are too slow to turn out better. In
  /// large networks, which take long to complete, a difference below a thousandth makes no other choice.
  void leaveClose(std::deque<Try>& chosen) const {
    constexpr int kPercent = 1;  // error of expected cycles
    const bool large = prepared_.passes() > kMaxPlannedPasses;
    const Try& last = chosen.front();
    std::deque<Try> close;
    for (const Try& choice : chosen) {
      const bool exact = options_.effort == 3;
      const bool known = std::any_of(close.begin(), close.end(), [&](const Try& other) {
        if (exact) return other.limits == choice.limits;
        if (large) return std::abs(other.cycles - choice.cycles) * 1000 <= other.cycles;
        return other.cycles == choice.cycles && other.bytes == choice.bytes;
      });
      const bool slow = !exact && choice.cycles * 100 > last.cycles * (100 + kPercent);
      if (!known && !slow) close.push_back(choice);
    }
    chosen = std::move(close);
  }

  /// An input that is read in place costs little under the calibrated model, but much if short accesses take
  /// whole bursts, which measurements do not rule out everywhere. Of two tries that differ in nothing else,
  /// one that is at most 1 % slower and depends less on this replaces the best one, and its scheduler that of
  /// the best (null: not created yet).
  Try* safer(const std::vector<Try*>& order, Try* front, std::unique_ptr<Scheduler>& scheduler) const {
    if (!prepared_.mayCopyInputs()) return front;
    Limits limits = front->limits;
    limits.copyInputs = !limits.copyInputs;
    const auto other =
        std::find_if(order.begin(), order.end(), [&](const Try* t) { return t->limits == limits; });
    if (other == order.end() || (*other)->error || (*other)->cycles * 100 > front->cycles * 101) return front;
    if (!scheduler) {
      Try again(front->limits);
      scheduler = measurer_.measured(again);
    }
    Try again(limits);
    auto safe = measurer_.measured(again);
    if (again.error || safe->cyclesOverSettings() >= scheduler->cyclesOverSettings()) return front;
    scheduler = std::move(safe);
    return *other;
  }

  /// Schedules planned for transfers and kernels that share ports, and the best of them.
  struct Beside {
    std::vector<Limits> known;
    Try best;
    std::unique_ptr<Scheduler> scheduler;
  };

  /// Every try is planned for the worst case: weights fetched while kernels use the same port wait for them.
  /// Replans one for another way of sharing the port: by turns, or with transfers in the gaps that kernels
  /// leave.
  void planWithSharing(const Try& waiting, PortSharing sharing, Beside& beside) const {
    Try other(waiting.limits);
    other.limits.sharing = sharing;
    if (std::find(beside.known.begin(), beside.known.end(), other.limits) != beside.known.end()) return;
    beside.known.push_back(other.limits);
    auto scheduler = measurer_.replanned(other, waiting);
    if (!scheduler || other.error || (beside.scheduler && !comesBefore(other, beside.best))) return;
    beside.best = std::move(other);
    beside.scheduler = std::move(scheduler);
  }

  /// Whether the best schedule planned for shared ports takes over 1 % fewer cycles than `safe`, or no more
  /// when transfers get only what kernels leave. `other`: the scheduler of `safe`, or null.
  bool isWorthDoubt(const Beside& beside, const Try& safe, std::unique_ptr<Scheduler>& other) const {
    if (beside.best.cycles * 101 < safe.cycles * 100) return true;
    if (!other) {
      Try again(safe.limits, safe.plan);
      other = measurer_.measured(again);
    }
    return beside.scheduler->cyclesIfTransfersWait() <= other->cyclesIfTransfersWait();
  }

  /// A plan that fills a dedicated cache to the last byte has no space for weights that are larger than
  /// expected: replans with the actual sizes, at most kLargerTries times, or moves some maps behind the
  /// cache, if that costs little. The faster one, or an error if neither fits, or the arena does not.
  Result<Schedule> withSizesOf(Scheduler& unfinished, const Try& result, size_t tries) const {
    constexpr npu::Cycles kParts = 400;  // a slowdown by one part costs little
    const auto fits = [this](const Result<Schedule>& schedule) {
      return schedule.ok() && (arenaLimit_ == 0 || schedule->arenaBytes <= arenaLimit_);
    };
    Result<Schedule> best = *result.error;
    const auto offer = [&](Result<Schedule> schedule) {
      if (fits(schedule) && (!best.ok() || streamCycles(*schedule) < streamCycles(*best)))
        best = std::move(schedule);
    };
    if (tries <= kLargerTries) {
      Scheduler scheduler = prepared_;
      if (scheduler.expectSizesOf(unfinished.encodedPasses())) {
        Try again(result.limits);
        measurer_.measure(scheduler, again);
        if (!again.error) offer(scheduler.finish());
      }
    }
    if (machine_.memory.spilling()) offer(unfinished.finishWithLess(result.cycles + result.cycles / kParts));
    return best;
  }

  /// Adds a try that could not be completed to the order again, from position `first` on, with less memory:
  /// as much as the error of expected sizes, and as much as it takes.
  void insertTighter(const Try& failed, std::vector<Try*>& order, size_t first,
                     std::deque<Try>& tighter) const {
    if (tighter.size() >= kTighterTries || !machine_.memory.spilling()) return;
    const auto insert = [&](Try planned) {
      if (planned.error) return;
      tighter.push_back(std::move(planned));
      const auto worse = [&](const Try* t) { return comesBefore(tighter.back(), *t); };
      const auto next = order.begin() + static_cast<std::ptrdiff_t>(first);
      order.insert(std::find_if(next, order.end(), worse), &tighter.back());
    };
    Try slightly(failed.limits), enough(failed.limits);
    planWith(slightly, [](int64_t bytes) { return bytes / 64 * 63; });
    insert(std::move(slightly));
    tighten(enough);
    insert(std::move(enough));
  }

  /// Replans with only `less` bytes of every limit.
  template <typename Less>
  std::unique_ptr<Scheduler> planWith(Try& result, const Less& less) const {
    Limits& limits = result.limits;
    if (limits.cascades) limits.cascades = less(*limits.cascades);
    limits.maps = less(limits.maps);
    limits.fast = less(limits.fast);
    result.error.reset();
    return measurer_.measured(result);
  }

  /// Addresses may need slightly more memory than the planned live bytes: replans what does not fit a
  /// dedicated cache with less of it, one sixteenth at a time, for a few steps.
  void tighten(Try& result) const {
    for (int step = 0; step < kTighterSteps; ++step) {
      tightened(result);
      if (!result.error) break;
    }
  }

  /// Replans with a sixteenth less.
  std::unique_ptr<Scheduler> tightened(Try& result) const {
    return planWith(result, [](int64_t bytes) { return bytes / 16 * 15; });
  }

  /// Only for tries that were to fill the whole cache; smaller ones have each other as alternatives. In small
  /// networks, with one step more than what fits needs: that may be faster.
  void tightenFailed(std::vector<Try>& results, Best& best) const {
    const int64_t cache = cacheLimit(machine_, options_);
    const int wanted = prepared_.passes() <= kMaxPlannedPasses ? 2 : 1;
    for (size_t i = 0, count = results.size(); i < count; ++i) {
      if (!results[i].error || results[i].limits.fast != cache) continue;
      Try next(results[i].limits);
      next.effort = results[i].effort;
      for (int step = 0, fitting = 0; step < kTighterSteps && fitting < wanted; ++step) {
        auto scheduler = tightened(next);
        if (next.error) continue;
        ++fitting;
        results.push_back(next);
        best.offer(*this, results, results.size() - 1, std::move(scheduler));
      }
    }
  }

  /// Whether `a` ranks before `b`: tries that can be scheduled first, then the better one.
  bool comesBefore(const Try& a, const Try& b) const { return !a.error && (b.error || better(a, b)); }

  /// First by whether a try fits the arena, or the part of a cache, that the user allows; then by cycles.
  /// Without such a limit, half a percent of the cycles is not worth more memory: cycles count in steps of
  /// that size from the fewest cycles of all tries, in both directions.
  bool better(const Try& a, const Try& b) const {
    const auto key = [this](const Try& t) {
      const bool spilling = machine_.memory.spilling();
      const int64_t most = aim_ > 0 || spilling ? aim_ : arenaLimit_;
      const bool fits =
          (most == 0 || t.bytes <= most) && (!spilling || arenaLimit_ == 0 || t.arena <= arenaLimit_);
      const double steps =
          std::log(static_cast<double>(t.cycles + 1) / static_cast<double>(fewest_ + 1)) / std::log(1.005);
      const bool exact = spilling || most > 0;
      return std::tuple(!fits, exact ? static_cast<double>(t.cycles) : std::trunc(steps), t.bytes, t.cycles);
    };
    return key(a) < key(b);
  }

  const Scheduler& prepared_;
  TryMeasurer measurer_;
  const npu::Machine& machine_;
  const Options& options_;
  const int64_t arenaLimit_, aim_;
  npu::Cycles fewest_ = 0;  // of the tries that were measured first
};

}  // namespace

Result<npu::Cycles> expectedCycles(const Scheduler& prepared, const npu::Machine& machine,
                                   const Options& options) {
  return Search(prepared, machine, options, options.arenaLimit, 0).expect();
}

Result<Schedule> fastestSchedule(const Scheduler& prepared, const npu::Machine& machine,
                                 const Options& options, int64_t arenaLimit, int64_t aim) {
  Search search(prepared, machine, options, arenaLimit, aim);
  Result<Schedule> found = search.run();
  if (options.effort < 3 || !machine.memory.slowConstants() || !found.ok()) return found;
  // Search again with the actual sizes of the weights.
  Scheduler exact = prepared;
  if (!exact.expectSizesOf(found->passes)) return found;
  Options normal = options;
  normal.effort = 2;
  Result<Schedule> again = Search(exact, machine, normal, arenaLimit, aim).run();
  return again.ok() && search.isFaster(*again, *found) ? std::move(again) : std::move(found);
}

}  // namespace carina::compiler
