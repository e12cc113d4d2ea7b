// SPDX-License-Identifier: Apache-2.0
#include "pipeline/partitioning.hpp"

#include <algorithm>
#include <set>

#include "aten/control_flow.hpp"
#include "aten/operator_facts.hpp"
#include "pipeline/tflite_network.hpp"
#include "quantize/annotate.hpp"

namespace carina::pipeline {
namespace {

/// Why the target does not support an operator. If a newer NPU does, the remedy says so.
std::optional<Diagnostic> refusalOf(const ir::Node& op, const npu::Target& target) {
  auto why = compiler::supports(op, target);
  if (!why || target.isU85()) return why;
  const auto latest = npu::findTarget("ethos-u85-256");
  if (latest && !compiler::supports(op, **latest)) {
    why->remedy =
        "compile for an Ethos-U85, which has it" + (why->remedy.empty() ? "" : "; or " + why->remedy);
  }
  return why;
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

using Names = std::set<std::pair<std::string, std::string>>;  // of a node and its operator

/// Operators that the quantizer leaves in float because they have no integer form.
Names leftInFloat(const ir::Graph& graph) {
  Names names;
  aten::forEachNode(graph, [&](const ir::Node& node) {
    if (node.location() && quantize::roleOf(node) == quantize::Role::Float)
      names.emplace(node.location()->name, std::string(node.opName()));
  });
  return names;
}

/// Concatenations that the quantizer leaves in float because the ranges of their parts differ
/// (quantize/joins.hpp), and operators that move their results.
Names joinedInFloat(const ir::Graph& graph) {
  Names names;
  std::set<const ir::Node*> joined;
  aten::forEachNode(graph, [&](const ir::Node& node) {
    if (!node.location() || quantize::roleOf(node) != quantize::Role::Shared) return;
    const auto& operands = node.operands();
    const auto& uses = node.result(0)->uses();
    const auto made = [&](const ir::Value* operand, auto test) {
      return operand && operand->producer() && test(*operand->producer());
    };
    const bool joins =
        operands.size() > 1 && node.results().size() == 1 &&
        std::all_of(operands.begin(), operands.end(),
                    [&](const ir::Value* operand) { return made(operand, partition::isDequantize); }) &&
        std::none_of(uses.begin(), uses.end(),
                     [](const ir::Use& use) { return partition::isQuantize(*use.node); });
    const bool moves = !operands.empty() && made(operands[0], [&](const ir::Node& producer) {
      return joined.count(&producer) != 0;
    });
    if (!joins && !moves) return;
    joined.insert(&node);
    names.emplace(node.location()->name, std::string(node.opName()));
  });
  return names;
}

/// A value is not quantized because of the network's quantizer, or because no NPU computes its operator.
void explainFloat(partition::Partitioned& partitioned, const Names& floats, const Names& joined) {
  for (partition::Refusal& refusal : partitioned.refusals) {
    const bool unquantized = refusal.code == Code::NotQuantized;
    if (unquantized && joined.count({refusal.node, refusal.op}) != 0) {
      refusal.reason =
          "it joins parts of very different ranges, which keep their codes and are joined in float";
      refusal.remedy = "--io-outputs int8, or a rule with precision int16x8 for it, keeps it on the NPU";
      continue;
    }
    if (!unquantized || floats.count({refusal.node, refusal.op}) == 0) continue;
    refusal.code = Code::NoIntegerForm;
    refusal.reason = fmt::format("{} has no integer form: it computes in float", refusal.op);
    const std::string_view instead = aten::factsOf(refusal.op).instead;
    refusal.remedy = instead.empty()
                         ? "replace it in the network by operators that docs/operators.md lists for the NPU"
                         : std::string(instead);
  }
}

/// Names the request: rules of the quantizer's file leave operators in float as well.
void explainRequests(partition::Partitioned& partitioned, const std::vector<std::string>& byRules,
                     const Options& options) {
  for (partition::Refusal& refusal : partitioned.refusals) {
    if (refusal.code != Code::OnRequest || !contains(byRules, refusal.node)) continue;
    refusal.reason =
        fmt::format("left in float by the rules of {}", options.quantizeConfig.filename().string());
    refusal.remedy = "give it another precision there";
  }
}

/// The NPU computes int64 in 32 bits.
partition::Supports wideRefusals(const quantize::WideIntegers& wide) {
  return [&wide](const ir::Node& node) -> std::optional<Diagnostic> {
    const auto found = wide.find(node.where());
    if (found == wide.end()) return std::nullopt;
    Diagnostic why;
    why.code = Code::NoIntegerForm;
    why.message = fmt::format(
        "with the calibration data it reads or computes {}, but the NPU computes int64 in 32 bits",
        found->second);
    why.remedy = "keep its numbers within 32 bits";
    return why;
  };
}

Result<partition::Partitioned> partitionForNpu(const Options& options, const NpuPlaces& npu, Front& front,
                                               bool keepParts) {
  partition::Options partitioning;
  partitioning.keepParts = keepParts;
  partitioning.placeWhole = npu.placeWhole;
  partitioning.supports = npu.supports;
  partitioning.placeControlFlow = npu.placeControlFlow;
  partition::Requests& keepOff = partitioning.keepOff;
  keepOff = {options.cpuOps, options.cpuNames, options.cpuModules, {}, front.isTfl};
  keepOff.names.insert(keepOff.names.end(), front.keptFloat.begin(), front.keptFloat.end());
  for (const auto& [name, op] : operatorsByName(front.nodes)) keepOff.sourceOps.emplace(name, op);
  if (front.isTfl) partitioning.dialect = tfliteDialect(*front.tflite);
  partitioning.whyOther = front.isTfl ? tfliteRefusals(*front.tflite) : wideRefusals(front.wideIntegers);
  const Names floats = front.isTfl ? Names() : leftInFloat(front.quantized);
  const Names joined = front.quantization ? joinedInFloat(front.quantized) : Names();
  auto partitioned = partition::partition(std::move(front.quantized), partitioning);
  if (!partitioned) return std::move(partitioned).error().inFile(options.model.string());
  for (const std::string& request : partitioned->unmatched) {
    if (contains(front.keptFloat, request)) continue;  // folded into a neighbour
    return fail(Code::UnknownName, "no operator of the network matches '{}', which should stay on the CPU",
                request)
        .inFile(options.model.string())
        .withRemedy(fmt::format("'carina ops --target {} {}' lists operators, names and modules",
                                options.target, options.model.filename().string()));
  }
  if (front.isTfl) {
    nameOperators(front, *partitioned);
    return partitioned;
  }
  explainFloat(*partitioned, floats, joined);
  explainRequests(*partitioned, front.keptFloat, options);
  return partitioned;
}

}  // namespace

NpuPlaces placesOf(const npu::Machine& machine) {
  NpuPlaces places;
  places.placeWhole = [&machine](const ir::Graph& tosa) -> std::optional<ir::Graph> {
    auto placed = compiler::lowerToNpu(tosa, machine);
    if (!placed.ok()) return std::nullopt;
    return std::move(*placed);
  };
  places.supports = [&machine](const ir::Node& op) { return refusalOf(op, *machine.target); };
  if (machine.target->architecture().branches) {
    places.placeControlFlow = [&machine](const ir::Graph& tosa) {
      return compiler::checkControlFlow(tosa, machine);
    };
  }
  return places;
}

Result<partition::Partitioned> partitionFor(const Options& options, const NpuPlaces* npu, Front& front,
                                            bool keepParts) {
  partition::Partitioned partitioned;
  if (npu) {
    CARINA_TRY(partitioned, partitionForNpu(options, *npu, front, keepParts));
  } else {
    partitioned.graph = std::move(front.quantized);
  }
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(partitioned.graph, [](ir::Graph& graph) -> Status {
    partition::keepFloatInside(graph);
    return {};
  }));
  return partitioned;
}

}  // namespace carina::pipeline
