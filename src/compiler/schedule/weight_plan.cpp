// SPDX-License-Identifier: Apache-2.0
// Weight plans (weight_plan.hpp): a timeline of kernels and transfers judges the choice of paths, and a local
// search improves it. Transfers are started in the order in which they are needed, as early as the DMA engine
// and the memory are free.
#include "compiler/schedule/weight_plan.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "base/check.hpp"
#include "npu/timing/shared_ports.hpp"

namespace carina::compiler {
namespace {

using npu::Cycles;
using npu::timing::Arbiter;
using npu::timing::Queue;
using npu::timing::SharedPorts;

/// Bytes that a port moves in the given cycles, capped at more than any memory has.
double bytesIn(double cycles, double cyclesPerByte) {
  constexpr double kMost = 0x1p40;
  return cyclesPerByte > 0 ? std::min(cycles / cyclesPerByte, kMost) : kMost;
}

/// Smallest piece worth a transfer of its own, given its latency.
int64_t smallestPiece(const TransferSpeed& speed) {
  const double bytes = bytesIn(2 * static_cast<double>(speed.latency), speed.cyclesPerByte);
  return static_cast<int64_t>(std::clamp(bytes, 256.0, 1024.0));
}

constexpr int32_t kLookAhead = 256;  // groups
constexpr size_t kBlocked = 8;       // copies waiting for memory that others may overtake

size_t index(WeightPath path) {
  return static_cast<size_t>(path);
}

/// A copy in fast memory and its readers.
struct Copy {
  size_t use = 0;                    // the first one
  int32_t firstGroup = 0, last = 0;  // groups of the first and last use
  int32_t first = 0;                 // first group that its memory is reserved for
  int64_t bytes = 0, missing = 0;
  int32_t transfer = -1;  // the latest one

  bool begun() const { return missing < bytes; }
};

/// When kernels and transfers run, following npu::Timeline.
class Clock {
 public:
  /// `ends` receives the end of each transfer.
  Clock(const WeightProblem& problem, std::vector<Cycles>& ends)
      : speed_(problem.speed), sharing_(problem.sharing), ends_(ends) {
    ends_.clear();
  }

  Cycles kernelEnd() const { return ports_.end(Queue::Kernels); }

  /// `transfer`: the one to wait for; -1: none.
  void kernel(const PathCost& cost, int32_t transfer) {
    parser_ = std::max(parser_, ports_.end(Queue::Kernels, 1));
    if (transfer >= 0) parser_ = std::max(parser_, ends_[static_cast<size_t>(transfer)]);
    const Cycles start = std::max(parser_, kernelEnd());
    ports_.place(Queue::Kernels, {start, start + cost.cycles, {cost.port, cost.fastPort}, start},
                 Arbiter::Alternates);
    // Concurrent transfers now end later.
    const auto unfinished = std::min(static_cast<size_t>(std::max(speed_.outstanding, 1)), ends_.size());
    for (size_t back = 0; back < unfinished; ++back)
      ends_[ends_.size() - 1 - back] = ports_.end(Queue::Transfers, back);
  }

  /// Bytes that can be transferred between `from` and the end of `after`, kernels that begin at `until`.
  int64_t transferable(Cycles from, Cycles until, const PathCost& after) const {
    // The command processor does not wait for a place in the queue.
    if (oldest() > until) return 0;
    const Cycles start = std::max({parser_, oldest(), ports_.end(Queue::Transfers), from});
    const auto left = static_cast<double>(until + after.cycles - start);
    double most = bytesIn(left - static_cast<double>(speed_.latency), speed_.cyclesPerByte);
    for (const auto& [port, cyclesPerByte, busy] :
         {std::tuple(size_t{0}, speed_.cyclesPerByte, after.port),
          std::tuple(size_t{1}, speed_.fastCyclesPerByte, after.fastPort)}) {
      // What kernels leave of the port, or every other access while they run.
      double cycles = ports_.leftByKernels(port, start, until) + static_cast<double>(after.cycles - busy);
      if (sharing_ != PortSharing::Gaps) cycles = std::max(cycles, left / 2);
      most = std::min(most, bytesIn(cycles, cyclesPerByte));
    }
    return static_cast<int64_t>(most);
  }

  /// Returns the index of the transfer.
  int32_t transfer(Cycles from, int64_t bytes) {
    parser_ = std::max(parser_, oldest());
    const Cycles start = std::max({parser_, ports_.end(Queue::Transfers), from});
    const auto busy = static_cast<Cycles>(static_cast<double>(bytes) * speed_.cyclesPerByte);
    const auto fast = static_cast<Cycles>(static_cast<double>(bytes) * speed_.fastCyclesPerByte);
    ends_.push_back(
        ports_.place(Queue::Transfers, {start, start + busy + speed_.latency, {busy, fast}, start},
                     sharing_ == PortSharing::Waiting ? Arbiter::KernelsFirst : Arbiter::Alternates));
    return static_cast<int32_t>(ends_.size()) - 1;
  }

 private:
  /// End of the transfer that has to finish before another one starts.
  Cycles oldest() const {
    return ports_.end(Queue::Transfers, static_cast<size_t>(std::max(speed_.outstanding, 1)) - 1);
  }

  const TransferSpeed& speed_;
  const PortSharing sharing_;
  Cycles parser_ = 0;
  SharedPorts ports_;          // of the constants, and of fast memory
  std::vector<Cycles>& ends_;  // of all transfers
};

class Planner {
 public:
  explicit Planner(const WeightProblem& problem)
      : problem_(problem), smallestPiece_(smallestPiece(problem.speed)), useOf_(problem.groups.size(), -1) {
    for (size_t u = 0; u < problem.uses.size(); ++u) {
      useOf_[static_cast<size_t>(problem.uses[u].group)] = static_cast<int32_t>(u);
    }
    std::map<int32_t, size_t> sets;
    for (const WeightUse& use : problem.uses)
      setOf_.push_back(sets.try_emplace(use.set, sets.size()).first->second);
    latest_.resize(sets.size());
  }

  WeightPlan run() {
    consider(initial(true));
    if (hasThickSlices()) consider(initial(true, WeightPath::Sliced));
    if (problem_.copies && !best_.uses.empty()) return std::move(best_);
    consider(initial(false));
    consider(withoutCopies());
    CARINA_CHECK(!best_.uses.empty(), "weights that are read in place always fit");
    if (problem_.ahead) improve();
    if (problem_.ahead && !problem_.copies) fetchLate();
    return std::move(best_);
  }

 private:
  bool possible(size_t u, WeightPath path) const {
    return problem_.uses[u].costs[index(path)].cycles != kNoPath;
  }

  bool hasThickSlices() const {
    return std::any_of(problem_.uses.begin(), problem_.uses.end(), [](const WeightUse& use) {
      return use.costs[index(WeightPath::ThickSlices)].cycles != kNoPath ||
             use.costs[index(WeightPath::ThickestSlices)].cycles != kNoPath;
    });
  }

  /// Each use on its own: the fastest path that fits; copies first, or only where they are faster.
  std::vector<WeightPath> initial(bool copies, WeightPath thickest = WeightPath::ThickestSlices) const {
    std::vector<int64_t> free = freeBytes();
    std::vector<WeightPath> paths;
    for (size_t u = 0; u < problem_.uses.size(); ++u) {
      const WeightUse& use = problem_.uses[u];
      WeightPath path = leastMemory(u);
      const auto cycles = [&](WeightPath p) { return use.costs[index(p)].cycles; };
      for (const WeightPath other :
           {WeightPath::Whole, WeightPath::ThickestSlices, WeightPath::ThickSlices, WeightPath::Sliced}) {
        if (other > thickest || !possible(u, other) || !fits(free, use, other)) continue;
        if (possible(u, WeightPath::Direct) && !copies && cycles(WeightPath::Direct) <= cycles(other))
          continue;
        path = other;
        break;
      }
      reserve(free, use, path, 1);
      paths.push_back(path);
    }
    return paths;
  }

  std::vector<WeightPath> withoutCopies() const {
    std::vector<WeightPath> paths;
    for (size_t u = 0; u < problem_.uses.size(); ++u) paths.push_back(leastMemory(u));
    return paths;
  }

  WeightPath leastMemory(size_t u) const {
    if (possible(u, WeightPath::Direct)) return WeightPath::Direct;
    return possible(u, WeightPath::Sliced) ? WeightPath::Sliced : WeightPath::Whole;
  }

  std::vector<int64_t> freeBytes() const {
    std::vector<int64_t> free;
    addFreeBytes(free);
    return free;
  }
  void addFreeBytes(std::vector<int64_t>& free) const {
    for (const WeightGroup& group : problem_.groups) free.push_back(group.freeBytes);
  }

  /// Memory of a use in the group before its own and in its own.
  static std::pair<int64_t, int64_t> needs(const WeightUse& use, WeightPath path) {
    if (path == WeightPath::Whole) return {use.bytes, use.bytes};
    if (path == WeightPath::Direct) return {0, 0};
    const PathCost& cost = use.costs[index(path)];
    return {cost.sliceBytes, cost.slices > 1 ? 2 * cost.sliceBytes : cost.sliceBytes};
  }
  static bool fits(const std::vector<int64_t>& free, const WeightUse& use, WeightPath path) {
    const auto [before, at] = needs(use, path);
    const auto g = static_cast<size_t>(use.group);
    return free[g] >= at && (g == 0 || free[g - 1] >= before);
  }
  static void reserve(std::vector<int64_t>& free, const WeightUse& use, WeightPath path, int64_t sign) {
    const auto [before, at] = needs(use, path);
    const auto g = static_cast<size_t>(use.group);
    free[g] -= sign * at;
    if (g > 0) free[g - 1] -= sign * before;
  }

  static bool available(const std::vector<int64_t>& free, int32_t first, int32_t last, int64_t bytes) {
    for (int32_t g = std::max(first, 0); g <= last; ++g) {
      if (free[static_cast<size_t>(g)] < bytes) return false;
    }
    return true;
  }
  static void take(std::vector<int64_t>& free, int32_t first, int32_t last, int64_t bytes) {
    for (int32_t g = std::max(first, 0); g <= last; ++g) free[static_cast<size_t>(g)] -= bytes;
  }

  /// Finds the copies for a choice of paths; returns whether they fit.
  bool findCopies(const std::vector<WeightPath>& paths) {
    free_.clear();
    addFreeBytes(free_);
    for (size_t u = 0; u < paths.size(); ++u) reserve(free_, problem_.uses[u], paths[u], 1);
    // Uses without a choice may need more than is available.
    for (size_t u = 0; u < paths.size(); ++u) {
      const auto g = static_cast<size_t>(problem_.uses[u].group);
      const bool choice = possible(u, WeightPath::Direct) && paths[u] != WeightPath::Direct;
      if (choice && (free_[g] < 0 || (g > 0 && free_[g - 1] < 0))) return false;
    }
    copies_.clear();
    std::fill(latest_.begin(), latest_.end(), -1);
    copyOf_.assign(paths.size(), -1);
    for (size_t u = 0; u < paths.size(); ++u) {
      if (paths[u] != WeightPath::Whole) continue;
      const WeightUse& use = problem_.uses[u];
      int32_t& latest = latest_[setOf_[u]];
      if (problem_.ahead && latest >= 0) {
        Copy& copy = copies_[static_cast<size_t>(latest)];
        // Groups between the uses; the one before the second use is already reserved.
        if (available(free_, copy.last + 1, use.group - 2, use.bytes)) {
          take(free_, copy.last + 1, use.group - 2, use.bytes);
          if (use.group - 1 <= copy.last) take(free_, use.group - 1, use.group - 1, -use.bytes);
          copy.last = use.group;
          copyOf_[u] = latest;
          continue;
        }
      }
      latest = copyOf_[u] = static_cast<int32_t>(copies_.size());
      copies_.push_back({u, use.group, use.group, use.group - 1, use.bytes, use.bytes});
    }
    return true;
  }

  /// When memory that is reserved from group `first` on may be written in group g: in its first group,
  /// kernels of the preceding group may still use it.
  Cycles writableFrom(int32_t first, int32_t g) const { return first < g ? 0 : groupStart_; }

  void fetch(Clock& clock, Copy& copy, int32_t during, int64_t bytes) {
    copy.transfer = clock.transfer(writableFrom(copy.first, during), bytes);
    fetches_.emplace_back(copy.use, Fetch{during, copy.bytes - copy.missing, bytes});
    copy.missing -= bytes;
  }

  /// What the kernels of group g take of the timeline and the ports if nothing makes them wait.
  PathCost kernels(const std::vector<WeightPath>& paths, size_t g) const {
    const int32_t u = useOf_[g];
    const WeightGroup& group = problem_.groups[g];
    if (u < 0) return {group.cycles, group.port, group.fastPort};
    PathCost cost = problem_.uses[static_cast<size_t>(u)].costs[index(paths[static_cast<size_t>(u)])];
    cost.cycles = cost.cycles / cost.slices * cost.slices;
    return cost;
  }

  /// Sums over the groups, and until which group pieces may be in flight that were begun in each.
  void findHorizons(const std::vector<WeightPath>& paths) {
    const size_t count = problem_.groups.size();
    before_.assign(count + 1, {0, 0, 0});
    for (size_t g = 0; g < count; ++g) {
      const PathCost cost = kernels(paths, g);
      const PathCost& sum = before_[g];
      before_[g + 1] = {sum.cycles + cost.cycles, sum.port + cost.port, sum.fastPort + cost.fastPort};
    }
    horizon_.assign(count, static_cast<int32_t>(count));
    for (size_t g = count; g-- > 1;) {
      const int32_t u = useOf_[g];
      const bool needed = problem_.groups[g].transfers || (u >= 0 && isSliced(paths[static_cast<size_t>(u)]));
      // Its transfers are issued as soon as the preceding operation begins.
      horizon_[g - 1] = needed || !problem_.longPieces ? static_cast<int32_t>(g) - 1 : horizon_[g];
    }
  }

  /// The plan with these paths; nothing if they do not fit, or take `limit` cycles or more.
  std::optional<WeightPlan> simulate(const std::vector<WeightPath>& paths, Cycles limit) {
    if (!findCopies(paths)) return std::nullopt;
    findHorizons(paths);
    fetches_.clear();
    Clock clock(problem_, transferEnds_);
    const auto count = static_cast<int32_t>(problem_.groups.size());
    size_t next = 0;  // the first incomplete copy
    int32_t firstSlice = -1;
    for (int32_t g = -1; g < count; ++g) {
      Cycles last = 0;  // when the group's last operation ends
      groupStart_ = clock.kernelEnd();
      if (clock.kernelEnd() + between(g, count).cycles >= limit) return std::nullopt;
      if (g >= 0) {
        const WeightGroup& group = problem_.groups[static_cast<size_t>(g)];
        const int32_t u = useOf_[static_cast<size_t>(g)];
        if (u < 0) {
          if (group.cycles > group.last) clock.kernel({group.cycles - group.last}, -1);
          clock.kernel({group.last, group.port, group.fastPort}, -1);
        } else {
          const auto at = static_cast<size_t>(u);
          const PathCost& cost = problem_.uses[at].costs[index(paths[at])];
          if (isSliced(paths[at])) {
            slices(clock, cost, firstSlice);
          } else {
            const int32_t copy = copyOf_[at];
            clock.kernel(cost, copy >= 0 ? copies_[static_cast<size_t>(copy)].transfer : -1);
          }
        }
        last = clock.kernelEnd();
      }
      // What the next group needs, at any cost.
      const int32_t following = g + 1 < count ? useOf_[static_cast<size_t>(g + 1)] : -1;
      if (following >= 0) {
        const auto at = static_cast<size_t>(following);
        if (isSliced(paths[at])) {
          firstSlice = clock.transfer(groupStart_, problem_.uses[at].costs[index(paths[at])].sliceBytes);
        } else if (copyOf_[at] >= 0) {
          Copy& copy = copies_[static_cast<size_t>(copyOf_[at])];
          if (copy.missing > 0) fetch(clock, copy, g, copy.missing);
        }
      }
      while (next < copies_.size() && copies_[next].missing == 0) ++next;
      if (problem_.ahead && g >= 0) fetchAhead(clock, next, g, last);
    }
    if (clock.kernelEnd() >= limit) return std::nullopt;
    return planOf(paths, clock.kernelEnd());
  }

  static void slices(Clock& clock, const PathCost& cost, int32_t transfer) {
    const PathCost slice{cost.cycles / cost.slices, cost.port / cost.slices, cost.fastPort / cost.slices};
    for (int32_t s = 0; s < cost.slices; ++s) {
      clock.kernel(slice, transfer);
      if (s + 1 < cost.slices) transfer = clock.transfer(0, cost.sliceBytes);
    }
  }

  /// Fetches pieces in the order in which they are needed: they arrive before the group ends, or before a
  /// later one that needs the DMA engine begins.
  void fetchAhead(Clock& clock, size_t next, int32_t g, Cycles until) {
    size_t blocked = 0;
    int32_t horizon = horizon_[static_cast<size_t>(g)];  // the first group that pieces must not delay
    for (size_t c = next; c < copies_.size() && blocked < kBlocked; ++c) {
      Copy& copy = copies_[c];
      if (copy.missing == 0) continue;
      if (copy.firstGroup > g + lookAhead_) return;
      horizon = std::min(horizon, copy.firstGroup);
      if (!copy.begun() && !available(free_, g, copy.firstGroup - 2, copy.bytes)) {
        --horizon;  // its transfer starts before
        ++blocked;
        continue;
      }
      const Cycles from = writableFrom(copy.begun() ? copy.first : g, g);
      const int64_t bytes =
          std::min(copy.missing, clock.transferable(from, until, between(g + 1, horizon)) / 16 * 16);
      if (bytes < std::min(copy.missing, smallestPiece_)) return;
      if (!copy.begun()) {
        take(free_, g, copy.firstGroup - 2, copy.bytes);
        copy.first = g;
      }
      fetch(clock, copy, g, bytes);
    }
  }

  /// What kernels take from group `first` up to `end`.
  PathCost between(int32_t first, int32_t end) const {
    if (first >= end) return {0, 0, 0};
    const PathCost &a = before_[static_cast<size_t>(std::max(first, 0))],
                   &b = before_[static_cast<size_t>(end)];
    return {b.cycles - a.cycles, b.port - a.port, b.fastPort - a.fastPort};
  }

  WeightPlan planOf(const std::vector<WeightPath>& paths, Cycles cycles) const {
    WeightPlan plan;
    plan.cycles = cycles;
    plan.uses.resize(paths.size());
    for (size_t u = 0; u < paths.size(); ++u) {
      plan.uses[u].path = paths[u];
      if (copyOf_[u] < 0) continue;
      const Copy& copy = copies_[static_cast<size_t>(copyOf_[u])];
      if (copy.use != u) {
        plan.uses[u].copyOf = static_cast<int32_t>(copy.use);
        continue;
      }
      plan.uses[u].liveFirst = copy.first;
      plan.uses[u].liveLast = copy.last;
    }
    for (const auto& [use, fetch] : fetches_) plan.uses[use].fetches.push_back(fetch);
    return plan;
  }

  bool consider(const std::vector<WeightPath>& paths) {
    auto plan = simulate(paths, best_.uses.empty() ? std::numeric_limits<Cycles>::max() : best_.cycles);
    if (!plan) return false;
    best_ = std::move(*plan);
    paths_ = paths;
    return true;
  }

  /// Tries other paths, use by use, as long as that helps.
  void improve() {
    int64_t budget = std::clamp<int64_t>(200'000 / static_cast<int64_t>(problem_.groups.size() + 1), 16, 400);
    std::vector<WeightPath> changed;
    for (bool better = true; better && budget > 0;) {
      better = false;
      for (size_t u = 0; u < problem_.uses.size() && budget > 0; ++u) {
        for (size_t p = 0; p < kWeightPaths; ++p) {
          const auto path = static_cast<WeightPath>(p);
          if (path == paths_[u] || !possible(u, path)) continue;
          changed = paths_;
          changed[u] = path;
          --budget;
          better |= consider(changed);
        }
        // All uses that read the same bytes together: the first copy pays for the others.
        for (const WeightPath path : {WeightPath::Direct, WeightPath::Whole}) {
          changed = paths_;
          int32_t alike = 0;
          for (size_t v = u; v < problem_.uses.size(); ++v) {
            if (problem_.uses[v].set != problem_.uses[u].set || !possible(v, path)) continue;
            changed[v] = path;
            ++alike;
          }
          if (alike < 2 || changed == paths_) continue;
          --budget;
          better |= consider(changed);
        }
      }
    }
  }

  /// The same paths with copies fetched as few groups early as possible at almost no cost: they take less
  /// memory, and for a shorter time.
  void fetchLate() {
    constexpr Cycles kParts = 500;  // a slowdown by one part is almost no cost
    for (const int32_t groups : {1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192}) {
      lookAhead_ = groups;
      auto plan = simulate(paths_, best_.cycles + best_.cycles / kParts);
      if (!plan) continue;
      best_ = std::move(*plan);
      return;
    }
  }

  const WeightProblem& problem_;
  const int64_t smallestPiece_;
  int32_t lookAhead_ = kLookAhead;
  std::vector<int32_t> useOf_;  // per group
  std::vector<size_t> setOf_;   // per use: its set, numbered from 0
  WeightPlan best_;
  std::vector<WeightPath> paths_;  // of the best plan
  // State of the simulation, reused by the next: there are hundreds.
  std::vector<int64_t> free_;     // per group
  std::vector<PathCost> before_;  // sums over the groups before each
  std::vector<int32_t> horizon_;  // per group
  std::vector<Copy> copies_;
  std::vector<int32_t> copyOf_;                    // per use; -1: none
  std::vector<int32_t> latest_;                    // per set: its latest copy
  std::vector<std::pair<size_t, Fetch>> fetches_;  // with the first use of the copy
  std::vector<Cycles> transferEnds_;
  Cycles groupStart_ = 0;
};

}  // namespace

WeightPlan planWeights(const WeightProblem& problem) {
  if (problem.uses.empty()) return {};
  return Planner(problem).run();
}

}  // namespace carina::compiler
