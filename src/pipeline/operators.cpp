// SPDX-License-Identifier: Apache-2.0
#include "pipeline/operators.hpp"

#include <algorithm>

#include "aten/control_flow.hpp"
#include "cpu/cost.hpp"
#include "cpu/emit.hpp"
#include "cpu/kernel_form.hpp"
#include "ir/invalid_node.hpp"
#include "pipeline/chosen_machine.hpp"
#include "pipeline/ethosn_partition.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/partitioning.hpp"
#include "pipeline/stopwatch.hpp"
#include "pipeline/tflite_network.hpp"
#include "pt2/exported_program.hpp"
#include "tosa/ops.hpp"

namespace carina::pipeline {
namespace {

/// Whether the value is a graph input, disregarding reshapes.
bool comesFromInput(const ir::Value* value) {
  while (const auto reshape = ir::producerAs<tosa::Reshape>(value)) value = reshape.input1();
  return value->isInput();
}
bool goesToOutput(const ir::Value& value) {
  if (value.isGraphOutput()) return true;
  return std::any_of(value.uses().begin(), value.uses().end(), [](const ir::Use& use) {
    return ir::isa<tosa::Reshape>(use.node) && goesToOutput(*use.node->result());
  });
}

size_t borderTranspositions(const ir::Graph& graph) {
  size_t count = 0;
  for (const ir::Node* node : graph.nodes()) {
    if (ir::isa<tosa::Transpose>(node))
      count += comesFromInput(node->operands()[0]) || goesToOutput(*node->result());
  }
  return count;
}

/// The kernels that one node in kernel form calls, or why there are none.
Result<std::vector<std::string>> kernelsOf(const ir::Node& node) {
  pte::Program program;
  pte::MethodBuilder builder(program);
  const auto valueOf = [&](const ir::Value* value) {
    return builder.activation(pte::fromDType(value->dtype()), cpu::sizesOf(*value));
  };
  CARINA_TRY([[maybe_unused]] const auto results, cpu::emitCall(builder, node, valueOf));
  CARINA_RETURN_IF_ERROR(builder.finish());
  std::vector<std::string> names;
  const pte::Method& method = program.methods.front();
  for (const pte::Instruction& instruction : method.chains[0].instructions) {
    names.push_back(method.operators[static_cast<size_t>(std::get<pte::KernelCall>(instruction).op)].str());
  }
  return names;
}

class Lister {
 public:
  Lister(const std::vector<SourceNode>& sources, cpu::Core core, OperatorList& list)
      : list_(list), core_(core) {
    for (const SourceNode& source : sources) {
      index_.emplace(source.name, list_.operators.size());
      OperatorPlace place;
      place.op = source.op;
      place.node = source.name;
      place.modulePath = source.modulePath;
      place.source = source.source;
      list_.operators.push_back(std::move(place));
    }
    npu_.assign(list_.operators.size(), false);
    cpu_.assign(list_.operators.size(), false);
  }

  void addPart(const ir::Graph& part) {
    aten::forEachNode(part, [&](const ir::Node& node) {
      if (partition::isQuantize(node) || partition::isDequantize(node)) return;
      if (const auto at = find(node)) npu_[*at] = true;
    });
  }

  void addCpuNode(const ir::Node& node) {
    if (partition::isQuantize(node) || partition::isDequantize(node) || partition::isIntegerCast(node)) {
      ++list_.conversions;
      list_.conversionCycles += cpu::estimateCycles(node, core_);
      return;
    }
    const auto at = find(node);
    if (!at) return;
    OperatorPlace& op = list_.operators[*at];
    cpu_[*at] = true;
    if (aten::isControlFlow(node)) {
      op.kernels.emplace_back("jump instructions");
      return;
    }
    op.cpuCycles += cpu::estimateCycles(node, core_);
    auto kernels = kernelsOf(node);
    if (kernels) {
      op.kernels.insert(op.kernels.end(), kernels->begin(), kernels->end());
    } else {
      op.missing.push_back(kernels.error().diagnostics().front().message);
    }
  }

  void addRefusal(const partition::Refusal& refusal) {
    const auto at = index_.find(refusal.node);
    if (at != index_.end()) list_.operators[at->second].refusals.push_back(refusal);
  }

  /// A node that remains an operator of TensorFlow Lite.
  void addTfliteNode(const ir::Node& node) {
    if (const auto at = find(node)) cpu_[*at] = true;
  }

  void addUnservable(const ir::Node& node, const Diagnostic& why) {
    const auto at = find(node);
    if (!at) return;
    OperatorPlace& op = list_.operators[*at];
    npu_[*at] = false;
    cpu_[*at] = true;
    op.refusals.push_back({op.op, op.node, op.modulePath, why.message, why.remedy, why.code});
    op.missing.push_back("networks of this kind have no CPU part");
  }

  void finish() {
    for (size_t i = 0; i < list_.operators.size(); ++i) {
      list_.operators[i].place = npu_[i]   ? (cpu_[i] ? Place::Both : Place::Npu)
                                 : cpu_[i] ? Place::Cpu
                                           : Place::Nowhere;
    }
  }

 private:
  std::optional<size_t> find(const ir::Node& node) const {
    if (!node.location()) return std::nullopt;
    const auto at = index_.find(node.location()->name);
    return at == index_.end() ? std::nullopt : std::optional(at->second);
  }

  OperatorList& list_;
  cpu::Core core_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<bool> npu_, cpu_;
};

/// The operators of a network that is TOSA or was lowered to it: without a CPU part, operators that the NPU
/// does not support run nowhere.
void listLowered(const ir::Graph& tosa, const partition::Supports& supports, Lister& lister) {
  lister.addPart(tosa);
  for (const ir::Node* node : tosa.nodes()) {
    if (!node->location()) continue;
    if (const auto why = supports(*node)) lister.addUnservable(*node, *why);
  }
}

/// The operators of a .tosa file, whose nodes are named by their results.
void listTosa(const ir::Graph& tosa, const partition::Supports& supports, OperatorList& list) {
  for (const ir::Node* node : tosa.nodes()) {
    if (node->results().empty()) continue;
    OperatorPlace place;
    place.op = std::string(node->opName());
    place.node = node->result(0)->name;
    place.place = Place::Npu;
    if (const auto why = supports(*node)) {
      place.place = Place::Refused;
      place.refusals.push_back({place.op, place.node, "", why->message, why->remedy, why->code});
    }
    list.operators.push_back(std::move(place));
  }
}

/// The operators as listed in a network file, for networks that cannot be read or lowered.
Result<std::vector<SourceNode>> nodesInFile(const Options& options) {
  std::vector<SourceNode> nodes;
  const std::string extension = options.model.extension().string();
  if (extension == ".pt2") {
    CARINA_TRY(const auto listed, pt2::listNodes(options.model, {.model = options.program}));
    for (const pt2::ListedNode& node : listed) {
      if (!node.location) continue;
      nodes.push_back({node.location->name, node.op, node.location->modulePath, node.location->source});
    }
  } else if (extension == ".tflite") {
    CARINA_TRY(nodes, tfliteNodes(options.model));
  }
  return nodes;
}

/// The table of a network that is refused because of some of its operators; nullopt if the error names none.
std::optional<OperatorList> refusedList(const Options& options, const Error& error) {
  const auto nodes = nodesInFile(options);
  if (!nodes) return std::nullopt;
  OperatorList list;
  list.target = options.target;
  list.quantization = quantizationOf(options);
  list.problems = error.diagnostics();
  bool named = false;
  for (const SourceNode& node : *nodes) {
    OperatorPlace place;
    place.op = node.op;
    place.node = node.name;
    place.modulePath = node.modulePath;
    place.source = node.source;
    place.place = Place::Unknown;
    for (const Diagnostic& problem : list.problems) {
      if (problem.place != node.name && !problem.place.starts_with(node.name + " ")) continue;
      place.place = Place::Refused;
      place.refusals.push_back(
          {node.op, node.name, node.modulePath, problem.message, problem.remedy, problem.code});
      named = true;
    }
    list.operators.push_back(std::move(place));
  }
  return named ? std::optional(std::move(list)) : std::nullopt;
}

/// The NPU that the options select; neither for target cpu.
struct ChosenNpu {
  std::optional<npu::Machine> machine;
  std::optional<ethosn::Target> ethosN;

  /// Answers about the operators of a TOSA graph; null without an NPU.
  partition::Supports supportsFor(const ir::Graph& tosa) const {
    if (ethosN) return ethosNSupports(tosa, *ethosN);
    if (!machine) return nullptr;
    return [target = machine->target](const ir::Node& node) { return compiler::supports(node, *target); };
  }
};

/// Placement of the operators of a network that stays in its dialect.
Result<partition::Partitioned> partitionOf(const Options& options, const ChosenNpu& npu, Front& front) {
  if (npu.ethosN) {
    CARINA_TRY(EthosNPartitioned made, partitionForEthosN(options, *npu.ethosN, front, true));
    return std::move(made.partitioned);
  }
  const NpuPlaces places = npu.machine ? placesOf(*npu.machine) : NpuPlaces();
  return partitionFor(options, npu.machine ? &places : nullptr, front, true);
}

/// Fills in the list of a network that has been read and quantized.
Status placeOperators(const Options& options, const ChosenNpu& npu, Front& front, OperatorList& list) {
  if (npu.machine) {
    const NpuPlaces places = placesOf(*npu.machine);
    placeTflite(options, places.placeWhole, front, places.placeControlFlow);
  }
  if (npu.ethosN) placeTflite(options, ethosNPlace(*npu.ethosN), front);
  Lister lister(front.nodes, usualCore(npu.machine ? &*npu.machine : nullptr), list);
  const partition::Supports supports =
      front.isTosa ? npu.supportsFor(front.quantized) : partition::Supports();
  if (front.isTosa && !front.nodes.empty() && supports) {
    listLowered(front.quantized, supports, lister);
    lister.finish();
    list.parts = 1;
    list.wholly = list.count(Place::Cpu) == 0;
    return {};
  }
  if (front.isTosa) {
    if (!supports) {
      return fail(Code::NeedsWholeNpu, "a TOSA graph can only be compiled for an NPU")
          .inFile(options.model.string())
          .withRemedy("name an NPU with --target, or run the graph itself: carina run");
    }
    listTosa(front.quantized, supports, list);
    list.parts = 1;
    list.wholly = list.count(Place::Refused) == 0;
    for (const OperatorPlace& op : list.operators) {
      for (const partition::Refusal& refusal : op.refusals)
        list.problems.push_back(
            {refusal.reason, refusal.remedy, options.model.string(), op.node, refusal.code});
    }
    return {};
  }
  if (!front.isTfl) {
    if (auto status = exposeIntegers(front.quantized, front.inputs, front.outputs, front.state.size());
        !status.ok())
      return std::move(status).error().inFile(options.model.string());
    exposeIntegerState(front.quantized, front.state.size());
  }
  CARINA_TRY(partition::Partitioned partitioned, partitionOf(options, npu, front));
  for (const partition::Delegate& delegate : partitioned.delegates) {
    lister.addPart(delegate.call->region(0));
    list.layoutChanges += borderTranspositions(delegate.tosa);
  }
  for (const partition::Refusal& refusal : partitioned.refusals) lister.addRefusal(refusal);
  list.parts = partitioned.delegates.size();
  list.wholly = partitioned.wholly;
  ir::Graph graph = std::move(partitioned.graph);
  if (front.isTfl) {
    for (const ir::Node* node : graph.nodes()) {
      if (!node->is(partition::delegateCallDef())) lister.addTfliteNode(*node);
    }
    lister.finish();
    return {};
  }
  if (auto status = cpu::toKernelForm(graph); !status.ok())
    return std::move(status).error().inFile(options.model.string());
  aten::forEachNode(graph, [&](const ir::Node& node) {
    if (!node.is(partition::delegateCallDef())) lister.addCpuNode(node);
  });
  lister.finish();
  return {};
}

using MakeFront = std::function<Result<Front>(const Options&, std::vector<StageTime>&)>;

Result<OperatorList> listPlaces(const Options& given, const MakeFront& makeFront) {
  Options options = given;
  options.madeUpSamples = options.calibration.empty();
  ChosenNpu npu;
  if (ethosn::isEthosNName(options.target)) {
    CARINA_TRY(npu.ethosN, chosenEthosN(options));
  } else if (options.target != "cpu") {
    CARINA_TRY(npu.machine, chosenMachine(options));
  }
  std::vector<StageTime> times;
  CARINA_TRY(Front front, makeFront(options, times));
  OperatorList list;
  list.warnings = std::move(front.warnings);
  list.target = options.target;
  list.quantization = quantizationOf(options);
  {
    Stopwatch watch(times, "place");
    CARINA_RETURN_IF_ERROR(placeOperators(options, npu, front, list));
  }
  list.times = std::move(times);
  return list;
}

}  // namespace

size_t OperatorList::count(Place place) const {
  return static_cast<size_t>(std::count_if(operators.begin(), operators.end(),
                                           [&](const OperatorPlace& op) { return op.place == place; }));
}

int64_t OperatorList::cpuCycles() const {
  int64_t cycles = conversionCycles;
  for (const OperatorPlace& op : operators) cycles += op.cpuCycles;
  return cycles;
}

Result<OperatorList> listOperators(const Options& options) {
  auto list = ir::rejectInvalidNodes("", [&] { return listPlaces(options, runFront); });
  if (list) return list;
  if (auto refused = refusedList(options, list.error())) return std::move(*refused);
  return list;
}

Result<OperatorList> listOperators(const Options& options, ir::Graph graph) {
  return listPlaces(options, [&](const Options& all, std::vector<StageTime>& times) {
    return frontOf(all, std::move(graph), times);
  });
}

}  // namespace carina::pipeline
