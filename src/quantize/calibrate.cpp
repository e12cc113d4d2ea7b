// SPDX-License-Identifier: Apache-2.0
// Calibration: samples run in parallel, their values are observed in sample order.
#include "quantize/calibrate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "aten/executor.hpp"
#include "aten/operator_facts.hpp"
#include "base/parallel.hpp"
#include "quantize/counts.hpp"
#include "quantize/gains.hpp"
#include "quantize/hidden_values.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// The range of row factors, without those of idle rows (Gain::isIdle()).
Range rangeOfBusy(std::span<const float> values, const Gain& gain) {
  Range range;
  for (float value : values) {
    if (!gain.isIdle(value)) range = unite(range, {value, value});
  }
  return range;
}

/// Outputs of a sample beyond this size are recomputed if needed, instead of being kept in memory.
constexpr int64_t kMaxKeptBytes = int64_t{16} << 20;

int64_t bytesOf(std::span<const Tensor> tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), int64_t{0},
                         [](int64_t sum, const Tensor& tensor) { return sum + tensor.numBytes(); });
}

int levelsOf(const Group& group) {
  const CodeRange codes = activationCodes(group.precision);
  return static_cast<int>(codes.max - codes.min + 1);
}

/// Whether the values are converted from uint8, and so have exact codes.
bool areBytes(const ir::Value& value) {
  const ir::Node* node = value.producer();
  return node && roleOf(*node) == Role::Own && node->operands()[0] &&
         node->operands()[0]->dtype() == DType::UInt8;
}

/// The bounds on the results of an operator.
Range possibleResults(const ir::Value& value) {
  constexpr float kAny = std::numeric_limits<float>::infinity();
  const ir::Node* node = value.producer();
  if (!node || !aten::isOperator(node)) return {-kAny, kAny};
  if (areBytes(value)) return {0, 255};
  if (const Range counts = possibleCounts(value); !counts.empty()) return counts;
  if (ir::isa<aten::LayerNorm>(node) || ir::isa<aten::RmsNorm>(node)) {
    // Reached if one element of n holds all the energy.
    const auto inputs = node->operands()[0]->numElements();
    const float most =
        std::sqrt(static_cast<float>(std::min(numElements(node->attributeAs<ir::Ints>(0)), inputs)));
    return {-most, most};
  }
  const aten::Interval range = aten::factsOf(*node).range;
  return {range.min, range.max};
}

/// The bounds from the operators that compute a group's values; the others only pass values on.
Range possibleValues(const Group& group) {
  Range range;
  for (const Form& form : group.forms) {
    const ir::Node* node = form.value->producer();
    if (form.value->isConstant() || form.taken || (form.made && node && roleOf(*node) == Role::Shared))
      continue;
    range = unite(range, possibleResults(*form.value));
  }
  if (range.empty()) range = possibleResults(*group.forms[0].value);
  // asin, acos and atanh are NaN outside [-1, 1].
  for (const Form& form : group.forms) {
    for (const ir::Use& use : form.value->uses()) {
      const aten::Interval domain = aten::factsOf(*use.node).domain;
      range = {std::max(range.min, domain.min), std::min(range.max, domain.max)};
    }
  }
  return range;
}

/// The range that a group has regardless of the samples.
Range certainValues(const Group& group) {
  const bool bytes = std::any_of(group.forms.begin(), group.forms.end(),
                                 [](const Form& form) { return areBytes(*form.value); });
  if (!bytes) return rangeOfCounts(*group.forms.front().value, group.precision);
  return {0, group.precision == Precision::Int8 ? 255.0f : 32767 * 0x1p-7f};
}

/// Extents of the values of each sample, which indicate how far those of unseen samples may reach.
class Reach {
 public:
  void add(const Range& extent) {
    if (extent.empty()) return;
    seen_ = unite(seen_, extent);
    low_.add(extent.min);
    high_.add(extent.max);
  }

  /// A range that was `cut` on purpose is not extended to the values cut off.
  Range withMargin(Range range, Precision precision, const Range& possible, bool cut) const {
    if (low_.count < 2) return range;
    const bool wide = precision == Precision::Int16x8;
    const double margin = wide ? kMargin16 : std::min(kMaxMargin8, kMargin8 / std::sqrt(low_.count));
    if (wide && !cut) range = unite(range, seen_);
    // At an end that the observer has cut, values beyond it cost less than coarser codes. Ranges are not
    // extended across 0 either.
    const double bins = 2 * (static_cast<double>(seen_.max) - seen_.min) / HistogramObserver::kBins;
    if (range.min <= seen_.min + bins && seen_.min < 0) {
      const double wider = std::max<double>(range.min - margin * low_.deviation(), possible.min);
      range.min = std::min(range.min, static_cast<float>(wider));
    }
    if (range.max >= seen_.max - bins && seen_.max > 0) {
      const double wider = std::min<double>(range.max + margin * high_.deviation(), possible.max);
      range.max = std::max(range.max, static_cast<float>(wider));
    }
    return range;
  }

 private:
  /// Mean and spread of a series of numbers (Welford).
  struct Series {
    double count = 0, mean = 0, squares = 0;
    void add(double x) {
      const double before = x - mean;
      mean += before / ++count;
      squares += before * (x - mean);
    }
    double deviation() const { return count > 1 ? std::sqrt(squares / (count - 1)) : 0; }
  };
  // In standard deviations. 16 bits have codes to spare; with 8 bits, a wider range makes all values coarser,
  // and the more samples there are, the closer their extremes are to the true ones.
  static constexpr double kMargin16 = 4, kMargin8 = 4, kMaxMargin8 = 2;

  Range seen_;
  Series low_, high_;
};

void gather(Seen& seen, size_t sample, Gathered& gathered) {
  for (const auto& [value, range] : seen.ranges) {
    Range& all = gathered.ranges.at(value);
    all = unite(all, range);
  }
  for (const auto& [value, rows] : seen.rows) gathered.rows.at(value).add(rows);
  const auto kept = gathered.outputs.find(sample);
  if (kept == gathered.outputs.end()) return;
  if (bytesOf(seen.outputs) <= kMaxKeptBytes)
    kept->second = std::move(seen.outputs);
  else
    gathered.outputs.erase(kept);
}

}  // namespace

Result<std::vector<Range>> calibrate(const ir::Graph& graph, const Annotation& annotation,
                                     std::span<const Sample> samples, bool rangeMargin, LayerInputs& inputs,
                                     const Progress& progress, WorkBudget* loops, Seen* first,
                                     Gathered* gathered) {
  const size_t groups = annotation.groups.size();
  const GroupsOf observing = groupsOf(annotation);
  std::vector<std::unique_ptr<Observer>> observers;
  // A moving average runs over samples: the values of a group in one sample count as one observation, and
  // constants are not averaged. Otherwise the first tensor would dominate.
  const auto averages = [&](size_t g) {
    return annotation.groups[g].observer.kind == ObserverKind::MovingAverage;
  };
  std::vector<Range> constants(groups);  // of groups that are averaged
  std::vector<std::optional<Gain>> gains(groups);
  const HiddenValues hidden(graph);
  std::vector<char> canHide(groups), hides(groups);
  /// The values that observers see.
  const auto visible = [&](size_t g, std::span<const float> values, std::vector<float>& memory) {
    if (canHide[g] == 0) return values;
    bool found = false;
    const auto seen = HiddenValues::without(values, memory, found);
    if (found) hides[g] = 1;
    return seen;
  };
  for (size_t g = 0; g < groups; ++g) {
    const Group& group = annotation.groups[g];
    canHide[g] = hidden.canBeIn(group) ? 1 : 0;
    if (group.observer.kind == ObserverKind::Histogram) gains[g] = gainOf(group);
    if (gains[g])
      observers.push_back(std::make_unique<GainObserver>(levelsOf(group), *gains[g]));
    else
      observers.push_back(makeObserver(group.observer, levelsOf(group)));
    if (group.widened) continue;
    for (const Form& form : group.forms) {
      if (!form.value->isConstant()) continue;
      std::vector<float> memory;
      const auto values = visible(g, form.value->constant().as<float>(), memory);
      if (averages(g))
        constants[g] = unite(constants[g], rangeOf(values));
      else
        observers[g]->observe(values);
    }
  }
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph, aten::Folding::All, loops));

  const NormRowsOf wantedRows = gathered ? gathered->rows : NormRowsOf();
  std::vector<Reach> reaches(groups);
  const size_t wave = std::min<size_t>(samples.size(), parallelThreads());
  for (size_t begin = 0; begin < samples.size(); begin += wave) {
    const size_t count = std::min(wave, samples.size() - begin);
    std::vector<Seen> seen(count);
    std::vector<Status> states(count);
    parallelFor(count, [&](size_t i) {
      if (first && begin + i == 0) {
        seen[i] = std::move(*first);
        return;
      }
      seen[i].groups.resize(groups);
      if (gathered) seen[i].rows = wantedRows;
      const auto keep = [&](const ir::Value& value, const Tensor& tensor) {
        seen[i].add(observing, inputs, value, tensor);
        if (!gathered || gathered->ranges.count(&value) == 0 || value.isConstant()) return;
        Range& range = seen[i].ranges[&value];
        range = unite(range, rangeOf(tensor.as<float>()));
      };
      if (auto results = executor.run(samples[begin + i], keep); results.ok()) {
        seen[i].outputs = std::move(*results);
      } else {
        states[i] = std::move(results).error();
      }
    });
    for (Status& state : states) CARINA_RETURN_IF_ERROR(std::move(state));
    parallelFor(groups, [&](size_t g) {
      for (const Seen& sample : seen) {
        Range extent;
        std::vector<float> memory;
        sample.groups[g].forEach([&](std::span<const float> all) {
          const auto values = visible(g, all, memory);
          if (!averages(g)) observers[g]->observe(values);
          extent = unite(extent, gains[g] ? rangeOfBusy(values, *gains[g]) : rangeOf(values));
        });
        if (averages(g) && !extent.empty()) observers[g]->observe(std::array{extent.min, extent.max});
        reaches[g].add(extent);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      inputs.add(begin + i, seen[i].inputs);
      if (gathered) gather(seen[i], begin + i, *gathered);
    }
    if (progress) progress(begin + count, samples.size());
  }

  std::vector<Range> ranges(groups);
  parallelFor(groups, [&](size_t g) {
    ranges[g] = unite(unite(observers[g]->range(), constants[g]), certainValues(annotation.groups[g]));
    const Group& group = annotation.groups[g];
    if (rangeMargin && group.observer.kind == ObserverKind::Histogram)
      ranges[g] =
          reaches[g].withMargin(ranges[g], group.precision, possibleValues(group), gains[g].has_value());
    if (hides[g] != 0) ranges[g] = HiddenValues::withRoom(ranges[g], group);
  });
  for (size_t g = 0; g < groups; ++g) {
    if (const auto from = annotation.groups[g].widened) ranges[g] = ranges[*from];
  }
  return ranges;
}

}  // namespace carina::quantize
