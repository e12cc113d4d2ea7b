// SPDX-License-Identifier: Apache-2.0
// What schedules within limits on fast memory would cost. The choices that several tries have in common are
// made once.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "compiler/search/scheduler.hpp"

namespace carina::compiler {

/// Limits, and the costs of the schedule within them.
struct Try {
  Try() = default;
  explicit Try(const Limits& l, std::shared_ptr<const WeightPlan> p = nullptr)
      : limits(l), plan(std::move(p)) {}
  Limits limits;
  std::shared_ptr<const WeightPlan> plan;  // if set, everything else is as for the other tries
  std::optional<Error> error;
  npu::Cycles cycles = 0;
  int64_t bytes = 0;
  int64_t arena = 0;           // behind a cache
  int effort = 1;              // lowest effort that includes it
  std::optional<size_t> same;  // index of an earlier one with the same weight plan

  /// Takes the costs of a try with the same result.
  void takeCosts(const Try& other) {
    limits.thickSlices = other.limits.thickSlices;
    error = other.error;
    cycles = other.cycles;
    bytes = other.bytes;
    arena = other.arena;
  }
};

class TryMeasurer {
 public:
  TryMeasurer(const Scheduler& prepared, const npu::Machine& machine)
      : prepared_(prepared), spilling_(machine.memory.spilling()) {}

  /// Without a dedicated cache, limits differ mainly in the memory for weights: what does not depend on it is
  /// chosen once, and of the tries with the same weight plan the first one of each effort is kept.
  std::vector<Try> prepare(std::vector<Try> all);

  /// Receives the index of a try and its scheduler, on any thread.
  using Offer = std::function<void(size_t, std::unique_ptr<Scheduler>)>;
  /// Measures the tries if they are to be compared, and chooses their schedules otherwise.
  void measureAll(std::vector<Try>& tries, bool compare, const Offer& offer) const;

  /// The scheduler of a try. With `compare`, the try receives its costs, or the error.
  std::unique_ptr<Scheduler> measured(Try& result, bool compare = true) const;
  /// The same with a scheduler that has chosen nothing yet.
  void measure(Scheduler& scheduler, Try& result) const { measure(scheduler, result, true); }

  /// Measures `next`, which differs from `last` in how weights are planned; null if the plan is the same.
  std::unique_ptr<Scheduler> replanned(Try& next, const Try& last) const;
  /// Measures `last` with transfers that take longer than a group, as `next`; null if their plan promises no
  /// gain, where that is known before.
  std::unique_ptr<Scheduler> withLongPieces(Try& next, const Try& last) const;

 private:
  /// Tries with the same places, in their original order.
  struct Alike {
    Limits limits;  // of one of them, preferably without cascades, which are slower to choose
    Places places;
    std::vector<size_t> tries;
  };

  static Limits forPlaces(Limits limits);
  std::vector<Alike> alike(std::vector<Try>& tries) const;
  void measureTogether(std::vector<Try>& tries, const Offer& offer) const;
  static bool thins(Try& result, const WeightPlan& plan);
  void measure(Scheduler& scheduler, Try& result, bool compare) const;
  const Scheduler* chosenFor(const Limits& limits, Try& result) const;
  std::unique_ptr<Scheduler> measuredWith(const Scheduler& chosen, const WeightPlan& plan, Try& result) const;
  static void measureChosen(Scheduler& scheduler, Try& result);

  const Scheduler& prepared_;
  const bool spilling_;                        // there is a dedicated cache
  std::unique_ptr<Scheduler> planned_;         // everything but the weights
  mutable std::unique_ptr<Scheduler> placed_;  // the same for a dedicated cache, of the latest try
  mutable Limits placedFor_;
};

/// Whether a number of cycles is more than a percent below another one.
constexpr bool savesAPercent(npu::Cycles less, npu::Cycles cycles) {
  return less * 100 < cycles * 99;
}

}  // namespace carina::compiler
