// SPDX-License-Identifier: Apache-2.0
#include "quantize/guarded_norms.hpp"

#include <algorithm>
#include <unordered_map>

#include "aten/executor.hpp"
#include "decompose/norms.hpp"
#include "quantize/assign.hpp"
#include "quantize/observer.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

using Rows = std::unordered_map<const ir::Value*, Range>;

/// The ranges of the rows of norms that have a guard outside of the root.
Result<Rows> observedRows(ir::Graph& graph, const Options& options, std::span<const Sample> samples) {
  Rows rows;
  CARINA_RETURN_IF_ERROR(decompose::useGuardedNorms(graph, [&](const ir::Value& of, double guard) {
    if (guard > 0) rows[&of];
    return false;
  }));
  if (rows.empty()) return rows;
  CARINA_TRY(const aten::Executor executor,
             aten::Executor::create(graph, aten::Folding::NothingThatGrows, options.loops.get()));
  for (const Sample& sample : samples) {
    const auto observe = [&](const ir::Value& value, const Tensor& tensor) {
      const auto row = rows.find(&value);
      if (row != rows.end()) row->second = unite(row->second, rangeOf(tensor.as<float>()));
    };
    CARINA_RETURN_IF_ERROR(executor.run(sample, observe));
  }
  return rows;
}

/// The distance between the codes of a value, the finest that its producer and its readers ask for; 0 for
/// float.
double stepOf(const ir::Value& value, const Range& range, const Assignment& assignment) {
  const double low = std::min(range.min, 0.0f), high = std::max(range.max, 0.0f);
  const auto stepFor = [&](const ir::Node& node) {
    const auto entry = assignment.nodes.find(&node);
    if (entry == assignment.nodes.end()) return high - low;  // another norm of these rows
    switch (entry->second.settings.precision) {
      case Precision::Int8:
        return (high - low) / 255;
      case Precision::Int16x8:
        return std::max(high, -low) / 32767;
      default:
        return 0.0;
    }
  };
  double step = value.producer() ? stepFor(*value.producer()) : high - low;
  for (const ir::Use& use : value.uses()) step = std::min(step, stepFor(*use.node));
  return step;
}

}  // namespace

Status useGuardedNorms(ir::Graph& graph, const Options& options, std::span<const Sample> samples) {
  CARINA_TRY(const Rows rows, observedRows(graph, options, samples));
  if (rows.empty()) return {};
  const Assignment assignment = assign(graph, options);
  // A guard g changes a row whose root mean square is r by g / r at most; rounding it to codes, by a noise of
  // 0.29 steps / r. An eighth of a step adds less than 1 dB to this noise.
  constexpr double kOfStep = 0.125;
  return decompose::useGuardedNorms(graph, [&](const ir::Value& of, double guard) {
    const auto row = rows.find(&of);
    return row != rows.end() && guard <= kOfStep * stepOf(of, row->second, assignment);
  });
}

}  // namespace carina::quantize
