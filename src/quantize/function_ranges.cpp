// SPDX-License-Identifier: Apache-2.0
#include "quantize/function_ranges.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "aten/executor.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

constexpr int64_t kPoints = 2049;    // of a range at which functions are evaluated
constexpr double kUnseen = 0.25;     // in codes: smaller differences are not seen
constexpr double kWorthwhile = 0.9;  // a range is cut if less than this share is left

/// Successive functions, from a value with codes to the next value with codes.
struct Chain {
  std::vector<const ir::Node*> functions;
  size_t result = 0;  // the group of the last one's results
};

/// The chain that begins with a reader; empty if it is not a function, or if its result has no codes.
std::optional<Chain> chainFrom(const Annotation& annotation, const ir::Node* reader) {
  Chain chain;
  while (isFunction(*reader) && !isRoundingFunction(*reader) && reader->operands().size() == 1) {
    chain.functions.push_back(reader);
    const ir::Value* result = reader->result();
    if (const auto made = annotation.producedIn.find(result); made != annotation.producedIn.end()) {
      chain.result = made->second;
      return chain;
    }
    if (!result->hasOneUse() || result->isGraphOutput()) break;
    reader = result->uses()[0].node;
  }
  return std::nullopt;
}

/// The results of the chain for these arguments; empty if they cannot be computed.
std::optional<Tensor> resultsOver(const Chain& chain, const Tensor& arguments) {
  ir::Graph graph;
  ir::Value* value = graph.addInput({DType::Float32, arguments.shape()});
  for (const ir::Node* function : chain.functions) {
    ir::NodeSpec spec;
    spec.def = &function->def();
    spec.operands.resize(function->def().operands.size());
    spec.operands[0] = {value};
    for (size_t i = 0; i < function->def().attributes.size(); ++i)
      spec.attributes.push_back(function->attribute(i));
    const auto made = graph.create(std::move(spec));
    if (!made || (*made)->result()->type != value->type) return std::nullopt;
    value = (*made)->result();
  }
  graph.setOutputs({value});
  auto results = aten::execute(graph, std::array{arguments});
  if (!results) return std::nullopt;
  return std::move(results->front());
}

/// Evenly spaced values over a range.
Tensor pointsOver(const Range& range) {
  Tensor arguments = Tensor::uninitialized(DType::Float32, {kPoints});
  const auto points = arguments.mutableAs<float>();
  for (size_t i = 0; i < points.size(); ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(kPoints - 1);
    points[i] = static_cast<float>(range.min + share * (static_cast<double>(range.max) - range.min));
  }
  return arguments;
}

/// The part of `range` outside which the chain's results stay within `unseen` of those at its ends.
std::optional<Range> distinguishablePart(const Chain& chain, const Range& range, double unseen) {
  const Tensor arguments = pointsOver(range);
  const auto points = arguments.as<float>();
  const auto results = resultsOver(chain, arguments);
  if (!results) return std::nullopt;
  const auto y = results->as<float>();
  const auto alike = [&](size_t a, size_t b) { return std::abs(static_cast<double>(y[a]) - y[b]) <= unseen; };
  size_t low = 0, high = y.size() - 1;
  while (low < high && alike(low + 1, 0)) ++low;
  while (high > low && alike(high - 1, y.size() - 1)) --high;
  if (low >= high) return std::nullopt;  // the whole range is one code
  return Range{points[low], points[high]};
}

/// The part of the range that the readers of a group distinguish; empty if one of them is not a function.
std::optional<Range> toldApartOf(const Annotation& annotation, const Group& group, const Range& range,
                                 const std::vector<Range>& ranges) {
  Range needed;
  for (const Form& form : group.forms) {
    if (form.leaves || form.value->isConstant() || form.value->isGraphOutput()) return std::nullopt;
    for (const ir::Use& use : form.made ? form.value->uses() : form.readers) {
      const auto chain = chainFrom(annotation, use.node);
      if (!chain) return std::nullopt;
      const Group& made = annotation.groups[chain->result];
      const Range results = unite(ranges[chain->result], {0, 0});
      const double codes = made.precision == Precision::Int8 ? 255 : 65535;
      const double unseen = kUnseen * (static_cast<double>(results.max) - results.min) / codes;
      if (!(unseen > 0) || !std::isfinite(unseen)) return std::nullopt;
      const auto part = distinguishablePart(*chain, range, unseen);
      if (!part) return std::nullopt;
      needed = unite(needed, *part);
    }
  }
  return needed.empty() ? std::nullopt : std::optional(needed);
}

float magnitude(const Range& range) {
  return std::max(std::abs(range.min), std::abs(range.max));
}

/// Whether codes have 16 bits and a range of their own.
bool isInt16(const Group& group) {
  return group.precision == Precision::Int16x8 && !group.widened && !group.wide && !group.prequantizedScale;
}

}  // namespace

void cutFlatEnds(const Annotation& annotation, std::vector<Range>& ranges) {
  // Results before their operands: finer codes distinguish more values.
  for (size_t g = annotation.groups.size(); g-- > 0;) {
    const Group& group = annotation.groups[g];
    if (group.precision != Precision::Int8 || group.widened || group.prequantizedScale ||
        group.observer.kind != ObserverKind::Histogram || ranges[g].empty())
      continue;
    const Range range = unite(ranges[g], {0, 0});
    const auto needed = toldApartOf(annotation, group, range, ranges);
    if (!needed) continue;
    const double width = static_cast<double>(range.max) - range.min;
    const Range rest = unite(*needed, {0, 0});
    if (static_cast<double>(rest.max) - rest.min < kWorthwhile * width) ranges[g] = *needed;
  }
}

void coverResults(const Annotation& annotation, std::vector<Range>& ranges) {
  for (size_t g = 0; g < annotation.groups.size(); ++g) {
    const Group& group = annotation.groups[g];
    if (!isInt16(group) || ranges[g].empty()) continue;
    const float end = magnitude(ranges[g]);
    for (const Form& form : group.forms) {
      for (const ir::Use& use : form.made ? form.value->uses() : form.readers) {
        const auto chain = chainFrom(annotation, use.node);
        if (!chain || !isInt16(annotation.groups[chain->result]) || ranges[chain->result].empty()) continue;
        const auto results = resultsOver(*chain, pointsOver({-end, end}));
        if (!results) continue;
        bool nonFinite = false;
        const Range all = rangeOf(results->as<float>(), &nonFinite);
        Range& made = ranges[chain->result];
        if (!nonFinite && magnitude(all) > magnitude(made) && magnitude(all) <= 2 * magnitude(made))
          made = unite(made, all);
      }
    }
  }
}

}  // namespace carina::quantize
