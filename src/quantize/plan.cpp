// SPDX-License-Identifier: Apache-2.0
#include "quantize/plan.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "quantize/calibrate.hpp"
#include "quantize/fine_arguments.hpp"
#include "quantize/fine_sums.hpp"
#include "quantize/function_ranges.hpp"
#include "quantize/group_params.hpp"
#include "quantize/guarded_norms.hpp"
#include "quantize/loops.hpp"
#include "quantize/rms_norms.hpp"
#include "quantize/seen.hpp"
#include "quantize/weight_codes.hpp"
#include "quantize/wide_logarithms.hpp"

namespace carina::quantize {
namespace {

/// Names unnamed values after the source node and the operator: float and quantized values are compared by
/// name.
void nameValues(ir::Graph& graph) {
  std::set<std::string, std::less<>> taken;
  std::map<std::string, int> numbered;  // the number for the next value of a name
  for (const ir::Value* input : graph.inputs()) taken.insert(input->name);
  const std::vector<ir::Node*> nodes = nodesWithLoops(graph);
  for (ir::Node* node : nodes) {
    for (const ir::Value* result : node->results()) taken.insert(result->name);
  }
  for (ir::Node* node : nodes) {
    for (ir::Value* result : node->results()) {
      if (!result->name.empty() || result->dtype() != DType::Float32) continue;
      std::string op(node->opName());
      op = op.substr(0, op.rfind('.'));
      op = op.substr(op.rfind('.') + 1);
      const std::string base =
          node->location() && !node->location()->name.empty() ? node->location()->name + "." + op : op;
      std::string name = base;
      for (int& next = numbered.try_emplace(base, 1).first->second; taken.count(name) != 0; ++next)
        name = fmt::format("{}_{}", base, next);
      taken.insert(name);
      result->name = name;
    }
  }
}

void useWideCodes(NodeSettings& entry) {
  entry.wide = true;
  entry.settings.observer = ObserverKind::MinMax;
}

/// The plan for these settings of the operators.
Result<Plan> planFor(Assignment assignment, const ir::Graph& graph, const Options& options,
                     std::span<const Sample> samples, LayerInputs::Wanted wanted, const Progress& progress) {
  Annotation annotation = annotate(graph, assignment, options);
  LayerInputs inputs(graph, annotation, wanted, samples.size());
  // The sample that joinsOf() runs need not run again in calibration.
  const GroupsOf observing = groupsOf(annotation);
  const bool showsFirst = options.states == 0;
  Seen seen;
  seen.groups.resize(annotation.groups.size());
  Gathered gathered{{}, {}, normInputs(graph, assignment)};
  seen.rows = gathered.rows;
  const auto show = [&](const ir::Value& value, const Tensor& tensor) {
    if (showsFirst) seen.add(observing, inputs, value, tensor);
  };
  CARINA_TRY(Joins joins, joinsOf(graph, assignment, annotation, options,
                                  showsFirst ? samples.front() : samples.back(), show));
  for (const ir::Node* node : joins.widely) useWideCodes(assignment.nodes.at(node));
  const bool changes = !joins.apart.empty() || !joins.widely.empty();
  if (changes) {
    seen = {};
    annotation = annotate(graph, assignment, options, joins.apart);
    inputs = LayerInputs(graph, annotation, wanted, samples.size());
  }
  const bool knowsFirst = showsFirst && !changes && joins.outputs;
  if (knowsFirst) seen.outputs = *std::exchange(joins.outputs, std::nullopt);
  for (size_t i = 0; i < std::min(options.compared, samples.size()); ++i)
    gathered.outputs[comparedSample(i, options.compared, samples.size())];
  gathered.ranges = std::move(joins.ranges);
  CARINA_TRY(std::vector<Range> ranges,
             calibrate(graph, annotation, samples, options.rangeMargin, inputs, progress, options.loops.get(),
                       knowsFirst ? &seen : nullptr, &gathered));
  joins.ranges = std::move(gathered.ranges);
  cutFlatEnds(annotation, ranges);
  coverResults(annotation, ranges);
  giveWideCodesRoom(annotation, ranges);
  std::vector<QParams> params = groupParams(graph, annotation, ranges);
  return Plan{std::move(assignment),
              std::move(annotation),
              std::move(joins),
              std::move(inputs),
              std::move(ranges),
              std::move(params),
              std::move(gathered.outputs),
              std::move(gathered.rows),
              {},
              {}};
}

/// The names of the source nodes of these operators, in program order.
std::vector<std::string> sourceNames(std::span<const ir::Node* const> operators, const ir::Graph& graph) {
  const std::set<const ir::Node*> all(operators.begin(), operators.end());
  std::set<std::string_view> known;
  std::vector<std::string> names;
  for (const ir::Node* node : nodesWithLoops(graph)) {
    if (all.count(node) != 0 && node->location() && known.insert(node->location()->name).second)
      names.push_back(node->location()->name);
  }
  return names;
}

/// What folding products into the layers that follow may cost (foldBatchNorms()). Codes of 8 bits lose more
/// than weights of 8 bits with a scale per channel: those of the product have the steps that its largest
/// factor needs, in all channels. Without them, results are closer to float however much the factors differ.
/// Where weights of 8 bits decide the accuracy, folding may cost half a decibel; where coarser ones do,
/// nothing.
double mostNoiseOfWeights(const Options& options, Precision widest) {
  const auto isCoarse = [](const Overrides& overrides) {
    return overrides.weightBits.value_or(kMaxWeightBits) < kMaxWeightBits ||
           !overrides.perChannelWeights.value_or(true);
  };
  const bool areCoarse = options.weightBits < kMaxWeightBits || !options.perChannelWeights ||
                         std::any_of(options.rules.begin(), options.rules.end(),
                                     [&](const Rule& rule) { return isCoarse(rule.overrides); });
  if (areCoarse) return 1;
  return widest == Precision::Int16x8 ? 1.25 : std::numeric_limits<double>::infinity();
}

}  // namespace

Precision widestPrecision(const Options& options) {
  const auto isWide = [](const Rule& rule) { return rule.overrides.precision == Precision::Int16x8; };
  return std::any_of(options.rules.begin(), options.rules.end(), isWide) ? Precision::Int16x8
                                                                         : options.precision;
}

Status prepareGraph(ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                    Precision widest) {
  CARINA_RETURN_IF_ERROR(checkWeights(graph));
  CARINA_RETURN_IF_ERROR(foldBatchNorms(graph, mostNoiseOfWeights(options, widest)));
  CARINA_RETURN_IF_ERROR(useGuardedNorms(graph, options, samples));
  CARINA_RETURN_IF_ERROR(useRmsNorms(graph));
  nameValues(graph);
  if (options.equalize) CARINA_RETURN_IF_ERROR(equalize(graph, samples, options.loops.get()));
  return {};
}

Result<Plan> makePlan(const ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                      LayerInputs::Wanted wanted, const Progress& progress) {
  CARINA_TRY(Plan plan, planFor(assign(graph, options), graph, options, samples, wanted, progress));
  std::vector<const ir::Node*> wider =
      operatorsOfFineArguments(graph, plan.assignment, plan.annotation, plan.ranges);
  CARINA_TRY(const std::vector<const ir::Node*> sums,
             operatorsOfFineSums(graph, plan.rows, plan.assignment, plan.annotation, plan.params, samples,
                                 plan.outputs, options.loops.get()));
  wider.insert(wider.end(), sums.begin(), sums.end());
  const WideLogarithms logarithms =
      operatorsOfWideLogarithms(graph, plan.assignment, plan.annotation, plan.ranges);
  for (const ir::Node* node : logarithms.front) {
    if (mayWiden(plan.assignment, *node)) wider.push_back(node);
  }
  if (wider.empty() && logarithms.wide.empty()) return plan;
  Assignment assignment = assign(graph, options);
  for (const ir::Node* node : wider) assignment.nodes.at(node).settings.precision = Precision::Int16x8;
  for (const ir::Node* node : logarithms.wide) useWideCodes(assignment.nodes.at(node));
  // The same layers have the same inputs in float: their statistics need not be gathered again.
  LayerInputs inputs = std::move(plan.inputs);
  CARINA_TRY(plan, planFor(std::move(assignment), graph, options, samples, {}, progress));
  plan.inputs = std::move(inputs);
  plan.inputs.leaveAsRounded(logarithms.wide);
  plan.inputs.leaveAsRounded(logarithms.front);
  plan.fineSums = sourceNames(sums, graph);
  plan.wideLogarithms = sourceNames(logarithms.wide, graph);
  return plan;
}

}  // namespace carina::quantize
