// SPDX-License-Identifier: Apache-2.0
// Choice of cascades (cascades.hpp): a shortest path over the positions between passes, where an edge is a
// group that fits the limit. A cascade is only considered if it covers a pass that does not fit on its own or
// has maps behind the cache. The smallest limit that has a path at all is found by bisection.
#include "compiler/schedule/cascades.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/check.hpp"
#include "base/shape.hpp"

namespace carina::compiler {
namespace {

constexpr int32_t kLongest = 24;  // passes of a cascade
constexpr std::array<int32_t, 12> kRows{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
/// Cycles for each stripe of a pass: pipeline restart and commands.
constexpr npu::Cycles kStripeCycles = 40;
constexpr npu::Cycles kNever = std::numeric_limits<npu::Cycles>::max() / 4;

class Chooser {
 public:
  explicit Chooser(const CascadeProblem& problem)
      : problem_(problem), count_(static_cast<int32_t>(problem.passes.size())) {
    for (int32_t p = 0; p < count_;) {
      int32_t last = p;
      while (last + 1 < count_ && !pass(last + 1).startsUnit) ++last;
      units_.push_back({p, last, 0});
      p = last + 1;
    }
    starts_.assign(static_cast<size_t>(count_) + 1, 0);
    ends_ = starts_;
    for (const LiveRange& range : problem.buffers) {
      const auto at = [this](int32_t p) { return static_cast<size_t>(std::clamp(p, 0, count_)); };
      if (range.last < 0 || isBehind(range)) continue;  // or an unused input
      starts_[at(range.first)] += roundUp(range.bytes, 16);
      ends_[at(range.last)] += roundUp(range.bytes, 16);
    }
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    inside_.assign(1, 0);
    for (int32_t p = 0; p < count_; ++p) inside_.push_back(inside_.back() + wholeCycles(p, MapsBehind()));
    for (const Group& unit : units_) {
      alone_.push_back(liveBytes(unit, nullptr));
      npu::Cycles cycles = 0;
      bool behind = false;
      for (int32_t p = unit.first; p <= unit.last; ++p) {
        const MapsBehind maps = mapsBehind(p, unit, nullptr);
        cycles += wholeCycles(p, maps);
        behind |= maps != MapsBehind();
      }
      aloneCycles_.push_back(cycles);
      behind_.push_back(behind);
    }
  }

  Grouping separate() const {
    Grouping result;
    result.groups = units_;
    for (size_t u = 0; u < units_.size(); ++u) {
      result.bytes = std::max(result.bytes, alone_[u]);
      result.cycles += aloneCycles_[u];
    }
    return result;
  }

  Grouping smallest() {
    Grouping best = separate();
    int64_t low = 0, high = best.bytes;
    while (high - low > std::max<int64_t>(64, best.bytes / 256)) {
      const int64_t middle = low + (high - low) / 2;
      if (auto found = within(middle)) {
        high = std::min(middle, found->bytes);
        best = std::move(*found);
      } else {
        low = middle;
      }
    }
    return best;
  }

  /// Fewest cycles under the limit.
  std::optional<Grouping> within(int64_t limit) {
    const size_t n = units_.size();
    std::vector<npu::Cycles> best(n + 1, kNever);
    std::vector<std::pair<size_t, int32_t>> from(n + 1);  // first unit and rows of the group that ends here
    best[0] = 0;
    for (size_t begin = 0; begin < n; ++begin) {
      if (best[begin] >= kNever) continue;
      const auto reach = [&](size_t end, int32_t rows, npu::Cycles cycles) {
        if (best[begin] + cycles >= best[end + 1]) return;
        best[end + 1] = best[begin] + cycles;
        from[end + 1] = {begin, rows};
      };
      if (alone_[begin] <= limit) reach(begin, 0, aloneCycles_[begin]);
      bool useful = alone_[begin] > limit || behind_[begin];
      for (size_t end = begin + 1; end < n && units_[end].last - units_[begin].first < kLongest; ++end) {
        useful |= alone_[end] > limit || behind_[end];
        if (!canJoin(units_[begin].first, units_[end])) break;
        if (!useful || !canStartAt(units_[begin].first, units_[end].last)) continue;
        const npu::Cycles least = best[end + 1] - best[begin];
        if (const auto found = fastest({units_[begin].first, units_[end].last, 0}, limit, least))
          reach(end, found->first, found->second);
      }
    }
    if (best[n] >= kNever) return std::nullopt;
    Grouping result;
    result.cycles = best[n];
    for (size_t end = n; end > 0; end = from[end].first) {
      const auto [begin, rows] = from[end];
      Group group{units_[begin].first, units_[end - 1].last, rows};
      result.bytes = std::max(result.bytes, rows > 0 ? evaluate(group, limit).bytes : alone_[begin]);
      result.groups.push_back(group);
    }
    std::reverse(result.groups.begin(), result.groups.end());
    return result;
  }

 private:
  struct Candidate {
    int64_t bytes = std::numeric_limits<int64_t>::max();
    npu::Cycles cycles = kNever;
  };

  const CascadePass& pass(int32_t p) const { return problem_.passes[static_cast<size_t>(p)]; }

  /// Whether the unit can be a member of a cascade that starts at `first`; if not, no later one can.
  bool canJoin(int32_t first, const Group& unit) const {
    if (!pass(first).operation) return false;
    for (int32_t p = unit.first; p <= unit.last; ++p) {
      if (!pass(p).operation || pass(p).after >= first) return false;
    }
    return true;
  }
  bool canStartAt(int32_t first, int32_t last) const {
    return pass(first).after < first && pass(last).operation->ofm.height > 1;
  }

  npu::Cycles wholeCycles(int32_t p, MapsBehind behind) const {
    return problem_.cycles(p, pass(p).operation ? pass(p).operation->ofm.height : 0, behind);
  }

  /// Whether the buffer is behind the cache while it is whole.
  bool isBehind(const LiveRange& buffer) const { return buffer.bytes > problem_.maxCachedMapBytes; }
  const LiveRange& bufferOf(int32_t p) const { return problem_.buffers[static_cast<size_t>(pass(p).buffer)]; }

  /// Whether the group holds only some rows of the pass's buffer.
  bool rolls(int32_t p, const Group& group) const {
    return pass(p).buffer >= 0 && pass(p).rollsFrom >= group.first && pass(p).rollsUntil <= group.last;
  }

  /// Which maps of a pass of the group are behind the cache. `plan`: null for a unit on its own.
  MapsBehind mapsBehind(int32_t p, const Group& group, const StripePlan* plan) const {
    const auto result = [&](int32_t of) {
      if (of < 0 || pass(of).buffer < 0 || !isBehind(bufferOf(of))) return false;
      return plan == nullptr || of < group.first || !rolls(of, group);
    };
    return {result(pass(p).ifmProducer), result(pass(p).ifm2Producer), result(p)};
  }

  /// Bytes alive while the group runs.
  int64_t liveBytes(const Group& group, const StripePlan* plan) const {
    int64_t sum = starts_[static_cast<size_t>(group.last)];
    if (group.first > 0) sum -= ends_[static_cast<size_t>(group.first) - 1];
    for (int32_t p = group.first; p <= group.last; ++p) {
      const CascadePass& member = pass(p);
      if (plan == nullptr) {
        sum += member.stagedBytes;
        if (member.buffer >= 0 && !isBehind(bufferOf(p))) sum -= member.inPlaceBytes;
        continue;
      }
      sum += member.stagedWhole;
      if (!rolls(p, group) || pass(p).rollsFrom != p) continue;  // each buffer once
      sum += roundUp(member.rowBytes * plan->held[static_cast<size_t>(p - group.first)], 16);
      if (!isBehind(bufferOf(p))) sum -= roundUp(bufferOf(p).bytes, 16);
    }
    return sum;
  }

  /// The rows at a time, and the cycles, of the fastest cascade of these passes that fits the limit and takes
  /// fewer than `most` cycles.
  std::optional<std::pair<int32_t, npu::Cycles>> fastest(Group group, int64_t limit, npu::Cycles most) {
    const int32_t height = pass(group.last).operation->ofm.height;
    const auto all = std::lower_bound(kRows.begin(), kRows.end(), height);
    group.rows = height;
    if (leastBytes(group) > limit || leastCycles(group, height) >= most) return std::nullopt;
    // Taller stripes take more memory and, as a rule, fewer cycles.
    const auto fits = std::partition_point(kRows.begin(), all, [&](int32_t rows) {
      group.rows = rows;
      return evaluate(group, limit).bytes <= limit;
    });
    std::optional<std::pair<int32_t, npu::Cycles>> best;
    for (auto rows = fits; rows != kRows.begin();) {
      group.rows = *--rows;
      if (leastCycles(group, height) >= most) break;
      const Candidate& candidate = evaluate(group, limit);
      if (candidate.cycles >= most) continue;
      most = candidate.cycles;
      best.emplace(*rows, candidate.cycles);
    }
    return best;
  }

  /// Lower bound on the cycles of any such cascade: whole passes with all maps in the cache, and one stripe
  /// for this many rows of the last pass.
  npu::Cycles leastCycles(const Group& group, int32_t height) const {
    const auto first = static_cast<size_t>(group.first), end = static_cast<size_t>(group.last) + 1;
    return (inside_[end] - inside_[first]) / 16 * 15 + kStripeCycles * (height / group.rows);
  }

  /// Lower bound on the bytes alive in any such cascade: one row of each map that rolls.
  int64_t leastBytes(const Group& group) const {
    const StripePlan oneRow{{}, std::vector<int32_t>(static_cast<size_t>(group.last - group.first) + 1, 1)};
    return liveBytes(group, &oneRow);
  }

  /// Cycles are only valid for candidates within the limit.
  const Candidate& evaluate(const Group& group, int64_t limit) {
    const auto [known, isNew] = candidates_.try_emplace({group.first, group.last, group.rows});
    Candidate& candidate = known->second;
    if (!isNew && (candidate.bytes > limit || candidate.cycles < kNever)) return candidate;
    const auto plan = planStripes(stripedPasses(problem_, group), group.rows);
    if (!plan) return candidate;
    candidate.bytes = liveBytes(group, &*plan);
    if (candidate.bytes <= limit) candidate.cycles = cyclesOf(group, *plan);
    return candidate;
  }

  npu::Cycles cyclesOf(const Group& group, const StripePlan& plan) {
    // The stripes of a pass have only a few different heights.
    std::vector<std::vector<std::pair<int32_t, npu::Cycles>>> known(plan.held.size());
    npu::Cycles sum = 0;
    for (const Stripe& stripe : plan.stripes) {
      const int32_t p = group.first + stripe.pass, rows = stripe.end - stripe.begin;
      auto& heights = known[static_cast<size_t>(stripe.pass)];
      auto same =
          std::find_if(heights.begin(), heights.end(), [&](const auto& h) { return h.first == rows; });
      if (same == heights.end()) {
        const npu::Cycles cycles = stripeCycles(p, rows, mapsBehind(p, group, &plan)) + kStripeCycles;
        same = heights.emplace(heights.end(), rows, cycles);
      }
      sum += same->second;
    }
    return sum;
  }

  npu::Cycles stripeCycles(int32_t p, int32_t rows, MapsBehind behind) {
    const auto [known, isNew] = stripes_.try_emplace({p, rows, behind}, 0);
    if (isNew) known->second = problem_.cycles(p, rows, behind);
    return known->second;
  }

  const CascadeProblem& problem_;
  int32_t count_;
  std::vector<Group> units_;    // single passes and chains
  std::vector<int64_t> alone_;  // live bytes of each
  std::vector<bool> behind_;    // whether some map of it is behind the cache
  // Total bytes of the buffers whose first or last pass, respectively, is at most this one.
  std::vector<int64_t> starts_, ends_;
  std::vector<npu::Cycles> aloneCycles_;
  std::vector<npu::Cycles> inside_;  // of the passes before each one, with all maps in the cache
  std::map<std::array<int32_t, 3>, Candidate> candidates_;
  std::map<std::tuple<int32_t, int32_t, MapsBehind>, npu::Cycles> stripes_;
};

}  // namespace

std::vector<StripedPass> stripedPasses(const CascadeProblem& problem, const Group& group) {
  std::vector<StripedPass> passes;
  const auto local = [&](int32_t producer) { return producer >= group.first ? producer - group.first : -1; };
  for (int32_t p = group.first; p <= group.last; ++p) {
    const CascadePass& pass = problem.passes[static_cast<size_t>(p)];
    passes.push_back({pass.operation, local(pass.ifmProducer), local(pass.ifm2Producer), local(pass.joined)});
  }
  return passes;
}

Grouping chooseGroups(const CascadeProblem& problem, int64_t limit) {
  Chooser chooser(problem);
  if (limit > 0) {
    if (auto found = chooser.within(limit)) return std::move(*found);
  }
  return chooser.smallest();
}

}  // namespace carina::compiler
