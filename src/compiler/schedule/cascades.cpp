// SPDX-License-Identifier: Apache-2.0
// Choice of cascades (cascades.hpp): a shortest path over the positions between passes, where an edge is a
// group that fits the limit. A cascade is worth a look only where it covers a pass that does not fit by
// itself; the smallest limit that has a path at all is found by bisection.
#include "compiler/schedule/cascades.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "base/check.hpp"
#include "base/shape.hpp"

namespace carina::compiler {
namespace {

constexpr int32_t kLongest = 24;  // passes of a cascade
constexpr std::array<int32_t, 12> kRows{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
/// Cycles for every stripe beyond the first of a pass: pipeline restart and commands.
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
      if (range.last < 0) continue;  // an input that nothing reads
      starts_[at(range.first)] += roundUp(range.bytes, 16);
      ends_[at(range.last)] += roundUp(range.bytes, 16);
    }
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    for (const Group& unit : units_) {
      alone_.push_back(liveBytes(unit, nullptr));
      npu::Cycles cycles = 0;
      for (int32_t p = unit.first; p <= unit.last; ++p) cycles += wholeCycles(p);
      aloneCycles_.push_back(cycles);
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
      bool useful = alone_[begin] > limit;
      for (size_t end = begin + 1; end < n && units_[end].last - units_[begin].first < kLongest; ++end) {
        useful |= alone_[end] > limit;
        if (!canJoin(units_[begin].first, units_[end])) break;
        if (!useful || !canStartAt(units_[begin].first, units_[end].last)) continue;
        for (const int32_t rows : kRows) {
          if (rows >= pass(units_[end].last).operation->ofm.height) break;
          const Candidate& candidate = evaluate({units_[begin].first, units_[end].last, rows});
          // Taller stripes only need more.
          if (candidate.bytes > limit) break;
          reach(end, rows, candidate.cycles);
        }
      }
    }
    if (best[n] >= kNever) return std::nullopt;
    Grouping result;
    result.cycles = best[n];
    for (size_t end = n; end > 0; end = from[end].first) {
      const auto [begin, rows] = from[end];
      Group group{units_[begin].first, units_[end - 1].last, rows};
      result.bytes = std::max(result.bytes, rows > 0 ? evaluate(group).bytes : alone_[begin]);
      result.groups.push_back(group);
    }
    std::reverse(result.groups.begin(), result.groups.end());
    return result;
  }

 private:
  struct Candidate {
    int64_t bytes = 0;
    npu::Cycles cycles = 0;
  };

  const CascadePass& pass(int32_t p) const { return problem_.passes[static_cast<size_t>(p)]; }

  /// The unit can be a member of a cascade that starts at `first`; once it cannot, no later one can.
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

  npu::Cycles wholeCycles(int32_t p) const {
    return problem_.cycles(p, pass(p).operation ? pass(p).operation->ofm.height : 0);
  }

  /// Bytes alive while the group runs.
  int64_t liveBytes(const Group& group, const StripePlan* plan) const {
    int64_t sum = starts_[static_cast<size_t>(group.last)];
    if (group.first > 0) sum -= ends_[static_cast<size_t>(group.first) - 1];
    for (int32_t p = group.first; p <= group.last; ++p) {
      const CascadePass& member = pass(p);
      if (plan == nullptr) {
        sum += member.stagedBytes - member.inPlaceBytes;
        continue;
      }
      sum += member.stagedWhole;
      if (member.buffer < 0 || member.rollsUntil < 0 || member.rollsUntil > group.last) continue;
      const int64_t held = member.rowBytes * plan->held[static_cast<size_t>(p - group.first)];
      sum -= roundUp(problem_.buffers[static_cast<size_t>(member.buffer)].bytes, 16) - roundUp(held, 16);
    }
    return sum;
  }

  const Candidate& evaluate(const Group& group) {
    const std::array<int32_t, 3> key{group.first, group.last, group.rows};
    if (const auto known = candidates_.find(key); known != candidates_.end()) return known->second;
    Candidate candidate{std::numeric_limits<int64_t>::max(), kNever};
    if (const auto plan = planStripes(stripedPasses(problem_, group), group.rows)) {
      candidate = {liveBytes(group, &*plan), 0};
      for (const Stripe& stripe : plan->stripes) {
        candidate.cycles +=
            stripeCycles(group.first + stripe.pass, stripe.end - stripe.begin) + kStripeCycles;
      }
    }
    return candidates_[key] = candidate;
  }

  npu::Cycles stripeCycles(int32_t p, int32_t rows) {
    const auto [known, isNew] = stripes_.try_emplace({p, rows}, 0);
    if (isNew) known->second = problem_.cycles(p, rows);
    return known->second;
  }

  const CascadeProblem& problem_;
  int32_t count_;
  std::vector<Group> units_;    // single passes and chains
  std::vector<int64_t> alone_;  // live bytes of each
  // Bytes of the buffers whose first or last pass is at most this one.
  std::vector<int64_t> starts_, ends_;
  std::vector<npu::Cycles> aloneCycles_;
  std::map<std::array<int32_t, 3>, Candidate> candidates_;
  std::map<std::pair<int32_t, int32_t>, npu::Cycles> stripes_;
};

}  // namespace

std::vector<StripedPass> stripedPasses(const CascadeProblem& problem, const Group& group) {
  std::vector<StripedPass> passes;
  const auto local = [&](int32_t producer) { return producer >= group.first ? producer - group.first : -1; };
  for (int32_t p = group.first; p <= group.last; ++p) {
    const CascadePass& pass = problem.passes[static_cast<size_t>(p)];
    passes.push_back({pass.operation, local(pass.ifmProducer), local(pass.ifm2Producer)});
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
