// SPDX-License-Identifier: Apache-2.0
// The quantizer: fold, equalize, observe, correct, insert quantize/dequantize nodes.
#include "quantize/quantize.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "aten/control_flow.hpp"
#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "base/file.hpp"
#include "quantize/bias_correction.hpp"
#include "quantize/fit_weights.hpp"
#include "quantize/insert.hpp"
#include "quantize/joins.hpp"
#include "quantize/loops.hpp"
#include "quantize/planned.hpp"
#include "quantize/region_borders.hpp"
#include "quantize/regions.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {
namespace {

bool isQuantizationNode(const ir::Node* node) {
  return ir::isa<aten::QuantizePerTensor>(node) || ir::isa<aten::DequantizePerTensor>(node) ||
         ir::isa<aten::QuantizePerChannel>(node) || ir::isa<aten::DequantizePerChannel>(node) ||
         ir::isa<aten::QuantizePerTensorByTensor>(node) || ir::isa<aten::DequantizePerTensorByTensor>(node) ||
         ir::isa<aten::QuantizePerTensorByTensor2>(node) || ir::isa<aten::DequantizePerTensorByTensor2>(node);
}

/// The report of a prequantized graph, from its quantize nodes.
Report prequantizedReport(const ir::Graph& graph) {
  Report report;
  for (ir::Node* node : graph.nodes()) {
    const auto q = ir::dynCast<aten::QuantizePerTensor>(node);
    if (!q) continue;
    const double zero = static_cast<double>(q.zeroPoint());
    report.tensors.push_back({q.input()->name,
                              modulePathOf(*q.input()),
                              (static_cast<double>(q.quantMin()) - zero) * q.scale(),
                              (static_cast<double>(q.quantMax()) - zero) * q.scale(),
                              q.scale(),
                              q.zeroPoint(),
                              q.dtype(),
                              false,
                              false,
                              {}});
  }
  return report;
}

/// The float value that a dequantized one represents: the operand of the first quantize node.
const ir::Value* quantizedSource(const ir::Value& value) {
  const ir::Value* source = nullptr;
  const ir::Value* at = &value;
  while (auto dequantize = ir::producerAs<aten::DequantizePerTensor>(at)) {
    auto quantize = ir::producerAs<aten::QuantizePerTensor>(dequantize.input());
    if (!quantize) break;
    source = at = quantize.input();
  }
  return source;
}

bool alike(const WeightCodes& a, const WeightCodes& b) {
  return a.codes.shape() == b.codes.shape() && a.codes.dtype() == b.codes.dtype() && a.scales == b.scales &&
         a.perChannel == b.perChannel && a.axis == b.axis && a.range == b.range;
}

/// Reuses the codes in `known` for equal weights, and adds those that it lacks.
void roundAsKnown(const ir::Graph& graph, LayerCodes& codes, KnownWeights& known) {
  for (ir::Node* node : nodesWithLoops(graph)) {
    const auto own = codes.find(node);
    const auto op = own == codes.end() ? std::nullopt : asWeighted(*node);
    if (!op) continue;
    const Tensor& real = op->weight->constant();
    const size_t hash = std::hash<std::string_view>()(asText(real.bytes()));
    const auto [first, last] = known.weights.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& entry) {
      return alike(entry.second.codes, own->second) && entry.second.real == real;
    });
    if (same == last) {
      known.weights.emplace(hash, KnownWeights::Weight{real, own->second});
    } else {
      own->second.codes = same->second.codes.codes;
    }
  }
}

/// Reuses the codes and biases of layers in `rounding`, and adds those that it lacks.
void roundAlike(ir::Graph& graph, LayerCodes& codes, LayerRounding& rounding) {
  for (ir::Node* node : nodesWithLoops(graph)) {
    const auto own = codes.find(node);
    const auto op = own == codes.end() ? std::nullopt : asWeighted(*node);
    if (!op) continue;
    const auto bias = op->bias ? std::optional(op->bias->constant()) : std::nullopt;
    const auto [known, isNew] =
        rounding.layers.try_emplace(node->result()->name, LayerRounding::Layer{own->second, bias});
    const WeightCodes& first = known->second.weight;
    if (isNew || !alike(first, own->second) || known->second.bias.has_value() != bias.has_value()) continue;
    own->second.codes = first.codes;
    if (bias)
      node->setOperandGroup(WeightedOp::kBiasOperand, std::array{graph.addConstant(*known->second.bias)});
  }
  graph.eraseUnusedConstants();
}

}  // namespace

SourceOps sourceOpsOf(const ir::Graph& graph) {
  SourceOps result;
  aten::forEachNode(graph, [&](const ir::Node& node) {
    if (node.location()) result[node.location()] = node.opName();
  });
  return result;
}

bool carriesQuantization(const ir::Graph& graph) {
  bool carries = false;
  aten::forEachNode(graph, [&](const ir::Node& node) { carries = carries || isQuantizationNode(&node); });
  return carries;
}

Result<Planned> planQuantization(ir::Graph& graph, const Options& options, std::span<const Sample> samples,
                                 const Progress& progress) {
  if (carriesQuantization(graph)) return Planned{};
  if (samples.empty()) {
    return fail(Code::BadCalibration, "quantization needs calibration samples")
        .withRemedy("give --calibrate DATA.npz, or --quantize none");
  }
  CARINA_RETURN_IF_ERROR(prepareGraph(graph, options, samples, widestPrecision(options)));
  Planned planned;
  planned.reference = graph.clone();
  CARINA_TRY(planned.plan,
             makePlan(graph, options, samples, {options.fitWeights, options.correctBiases}, progress));
  return planned;
}

Result<Quantized> insertPlanned(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                                Planned planned, const Precedent& precedent) {
  if (!planned.plan) {
    Report report = prequantizedReport(graph);
    return Quantized{std::move(graph), std::nullopt, std::move(report), {}, {}, {}};
  }
  const auto& [assignment, annotation, joins, inputs, ranges, params, outputs, rows, fineSums,
               wideLogarithms] = *planned.plan;
  std::vector<Diagnostic> warnings = assignment.warnings;
  const std::vector<Diagnostic> scarce = scarceParts(graph, annotation, params, joins);
  warnings.insert(warnings.end(), scarce.begin(), scarce.end());
  LayerCodes codes = roundWeights(graph, annotation, assignment, params);
  if (options.fitWeights) fitWeights(inputs, options.correctBiases, codes);
  if (precedent.weights) roundAsKnown(graph, codes, *precedent.weights);
  if (options.correctBiases) correctBiases(graph, inputs, codes);
  if (precedent.rounding) roundAlike(graph, codes, *precedent.rounding);
  Report report = insertQuantization(graph, annotation, assignment, ranges, params, std::move(codes));
  report.fineSums = fineSums;
  report.wideLogarithms = wideLogarithms;
  carryCodes(graph);
  CARINA_RETURN_IF_ERROR(unrollLoops(graph));
  warnings.insert(warnings.end(), annotation.warnings.begin(), annotation.warnings.end());
  Quantized quantized{std::move(graph),    std::move(planned.reference), std::move(report),
                      std::move(warnings), assignment.keptFloat,         outputs};
  CARINA_TRY(const BorderRanges borders, quantizeRegions(quantized, options, samples));
  if (options.codesInRegions)
    carryCodesIntoRegions(quantized.graph, borders, options.precision == Precision::Int16x8);
  return quantized;
}

Result<Quantized> quantize(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                           const Progress& progress) {
  CARINA_TRY(Planned planned, planQuantization(graph, options, samples, progress));
  return insertPlanned(std::move(graph), options, samples, std::move(planned));
}

Status measureSqnr(const Quantized& quantized, std::span<const Sample> samples, Report& report,
                   WorkBudget* loops) {
  if (!quantized.reference) return {};
  std::map<std::pair<std::string, DType>, TensorReport*> entries;
  for (TensorReport& tensor : report.tensors) {
    if (!tensor.isConstant) entries[{tensor.name, tensor.dtype}] = &tensor;
  }
  constexpr auto kFolding = aten::Folding::NothingThatGrows;  // avoids having all weights as floats at once
  CARINA_TRY(const aten::Executor real, aten::Executor::create(*quantized.reference, kFolding, loops));
  CARINA_TRY(const aten::Executor rounded, aten::Executor::create(quantized.graph, kFolding, loops));
  for (const Sample& sample : samples) {
    std::map<std::string, Tensor, std::less<>> values;
    CARINA_TRY(const auto floatOutputs, real.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
      if (value.dtype() == DType::Float32 && !value.isConstant()) values.insert_or_assign(value.name, tensor);
    }));
    CARINA_TRY(const auto outputs, rounded.run(sample, [&](const ir::Value& value, const Tensor& tensor) {
      const ir::Value* source = quantizedSource(value);
      if (!source || &value.producer()->graph() != &quantized.graph)
        return;  // regions run any number of times
      const auto entry = entries.find({source->name, value.producer()->operands()[0]->dtype()});
      const auto expected = values.find(source->name);
      if (entry != entries.end() && expected != values.end())
        entry->second->sqnr.add(expected->second, tensor);
    }));
  }
  return {};
}

}  // namespace carina::quantize
