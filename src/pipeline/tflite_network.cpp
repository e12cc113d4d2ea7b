// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tflite_network.hpp"

#include <algorithm>
#include <map>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "ir/printer.hpp"
#include "lower_tfl/lower.hpp"
#include "pipeline/partitioning.hpp"
#include "pipeline/stopwatch.hpp"
#include "pipeline/work_limits.hpp"
#include "tfl/ops.hpp"

namespace carina::pipeline {
namespace {

void dump(const Options& options, std::string_view stage, const ir::Graph& graph) {
  if (options.dump) options.dump(stage, [&] { return ir::print(graph); });
}

Result<std::shared_ptr<const TfliteSource>> readSource(const std::filesystem::path& path) {
  auto source = std::make_shared<TfliteSource>();
  CARINA_TRY(source->file, MappedFile::open(path));
  const auto read = [&]() -> Status {
    CARINA_TRY(source->model, tflite::readModel(source->file->bytes()));
    CARINA_TRY(source->network, tflite::buildPartialNetwork(source->model, source->file));
    return {};
  };
  if (Status status = read(); !status.ok())
    return std::move(status).error().inFile(path.string()).withRemedy(kDamagedRemedy);
  return std::shared_ptr<const TfliteSource>(std::move(source));
}

/// Every operator, named as in the file, those of the main subgraph first.
std::vector<SourceNode> nodesOf(const TfliteSource& source) {
  std::vector<SourceNode> nodes;
  for (const tflite::PartialSubgraph& subgraph : source.network.subgraphs) {
    const auto& operators = source.model.subgraphs[subgraph.index].operators;
    for (size_t i = 0; i < operators.size(); ++i) {
      const ir::Location& location = *subgraph.operators[i];
      nodes.push_back({location.name, "tfl." + operators[i].name, "", location.source});
    }
  }
  return nodes;
}

void warnOfIdleOptions(const Options& options, bool floatEdges, Front& front) {
  const bool asked =
      (options.quantization != Quantization::Default && options.quantization != Quantization::None) ||
      !options.quantizeConfig.empty() || !options.calibration.empty() ||
      options.weightBits != quantize::kMaxWeightBits;
  if (asked) {
    front.warnings.push_back(
        {"the network is already quantized: --quantize, --quantize-config, --weight-bits and --calibrate "
         "have no effect",
         "", options.model.string(), ""});
  }
  if (!floatEdges && options.ends.typesAsked) {
    front.warnings.push_back({"inputs and outputs keep the types of the file: --io has no effect", "",
                              options.model.string(), ""});
  }
}

/// The network's types if floats are requested to stay; else the integer types of `values` in the TOSA graph.
std::vector<DType> portTypes(std::vector<DType> types, ProgramIo asked,
                             const std::vector<ir::Value*>& values) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (isFloat(types[i]) && asked != ProgramIo::Float) types[i] = values[i]->dtype();
  }
  return types;
}

/// Replaces the front's graph by that of the tfl dialect.
void takeParts(Front& front) {
  front.quantized = front.tflite->network.graph.clone();
  front.isTosa = false;
  front.isTfl = true;
  front.inputTypes.clear();
  front.outputTypes.clear();
}

}  // namespace

Error wholeError(const TfliteSource& source, const Options& options) {
  const std::string file = options.model.string();
  auto graph = tflite::buildGraph(source.model, source.file);
  if (!graph) return std::move(graph).error().inFile(file);
  auto lowered = lower_tfl::lowerToTosa(*graph);
  if (!lowered) return std::move(lowered).error().inFile(file);
  std::vector<Diagnostic> problems;
  for (const auto& [location, why] : source.network.others) {
    problems.push_back(why);
    problems.back().place = location->name;
  }
  return Error(std::move(problems)).inFile(file);
}

namespace {

Result<ir::Graph> lowerPart(const ir::Graph& part) {
  const auto fromTo = [&](const ir::Node* node) -> Result<ir::Graph> {
    return fail(Code::NotQuantized, "it converts between codes and floats; the NPU computes in integers")
        .at(node->where());
  };
  auto lowered = lower_tfl::lowerToTosa(part);
  if (lowered && !lowered->floatEdges()) return std::move(lowered->tosa);
  if (lowered) {
    for (const ir::Node* node : part.nodes()) {
      if (isFloat(node->operand(0)->dtype()) || isFloat(node->result()->dtype())) return fromTo(node);
    }
  }
  // The partitioner identifies nodes by their locations.
  std::vector<Diagnostic> problems = lowered.error().diagnostics();
  for (Diagnostic& problem : problems) {
    for (const ir::Node* node : part.nodes()) {
      if (lower_tfl::placeOf(*node) != problem.place) continue;
      problem.place = node->where();
      break;
    }
  }
  return Error(std::move(problems));
}

bool convertsFloats(const ir::Node& node) {
  return (ir::isa<tfl::Quantize>(&node) && isFloat(node.operand(0)->dtype())) ||
         (ir::isa<tfl::Dequantize>(&node) && isFloat(node.result()->dtype()));
}

}  // namespace

std::string tfliteName(const ir::Node& node) {
  const auto other = ir::dynCast<tfl::Other>(&node);
  return other ? std::string(other.code()) : std::string(node.opName().substr(4));
}

Result<std::vector<SourceNode>> tfliteNodes(const std::filesystem::path& file) {
  CARINA_TRY(const auto source, readSource(file));
  return nodesOf(*source);
}

Result<Front> readTflite(const Options& options, std::vector<StageTime>& times) {
  Front front;
  {
    Stopwatch watch(times, "read");
    CARINA_TRY(front.tflite, readSource(options.model));
  }
  const tflite::PartialNetwork& network = front.tflite->network;
  dump(options, "read", network.graph);
  front.nodes = nodesOf(*front.tflite);
  Stopwatch watch(times, "lower");
  bool floatEdges = false;
  auto lowered = network.others.empty() ? std::optional(lower_tfl::lowerToTosa(network.graph)) : std::nullopt;
  if (lowered && lowered->ok()) {
    lower_tfl::Lowered& whole = **lowered;
    floatEdges = whole.floatEdges();
    front.isTosa = true;
    front.quantized = std::move(whole.tosa);
    if (Status fits = checkTensors(front.quantized, budgetOf(options)); !fits.ok())
      return std::move(fits).error().inFile(options.model.string());
    front.inputTypes = portTypes(whole.inputTypes, options.inputs, front.quantized.inputs());
    front.outputTypes = portTypes(whole.outputTypes, options.outputs, front.quantized.outputs());
  } else if (options.target != "cpu") {
    takeParts(front);
  } else {
    return wholeError(*front.tflite, options);
  }
  warnOfIdleOptions(options, floatEdges, front);
  return front;
}

std::optional<ir::Graph> placeTflite(const Options& options, const partition::Place& placeWhole, Front& front,
                                     const partition::PlaceControlFlow& placeControlFlow) {
  if (!front.isTosa || !front.tflite) return std::nullopt;
  const auto any = [](const std::vector<DType>& types) {
    return std::any_of(types.begin(), types.end(), isFloat);
  };
  const bool staysFloat = options.tflite && (any(front.inputTypes) || any(front.outputTypes));
  const bool asked = !options.cpuOps.empty() || !options.cpuNames.empty() || !options.cpuModules.empty();
  std::optional<ir::Graph> whole;
  if (!staysFloat && !asked) {
    if (!partition::hasControlFlow(front.quantized)) {
      whole = placeWhole(front.quantized);
    } else if (placeControlFlow && placeControlFlow(front.quantized).ok()) {
      return std::nullopt;  // one part, compiled from the TOSA graph
    }
  }
  if (whole) return whole;
  takeParts(front);
  if (options.ends.typesAsked) {
    front.warnings.push_back({"inputs and outputs keep the types of the file: --io has no effect", "",
                              options.model.string(), ""});
  }
  return whole;
}

partition::Dialect tfliteDialect(const TfliteSource& source) {
  partition::Dialect dialect;
  dialect.lower = lowerPart;
  dialect.converts = convertsFloats;
  dialect.divides = tflite::isSubgraphEnd;
  dialect.variable = [&source](const ir::Node& node) -> std::string_view {
    const auto name = source.network.variables.find(node.location().get());
    return name == source.network.variables.end() ? std::string_view() : name->second;
  };
  return dialect;
}

partition::Supports tfliteRefusals(const TfliteSource& source) {
  return [&source](const ir::Node& node) -> std::optional<Diagnostic> {
    const auto why = source.network.others.find(node.location().get());
    return why == source.network.others.end() ? std::nullopt : std::optional(why->second);
  };
}

void nameOperators(const Front& front, partition::Partitioned& partitioned) {
  const auto operators = operatorsByName(front.nodes);
  for (partition::Refusal& refusal : partitioned.refusals) {
    if (const auto known = operators.find(refusal.node); known != operators.end())
      refusal.op = std::string(known->second);
  }
}

}  // namespace carina::pipeline
