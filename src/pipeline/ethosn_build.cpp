// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ethosn_build.hpp"

#include <algorithm>

#include "base/output_path.hpp"
#include "ethosn/compiler/compile.hpp"
#include "ethosn/lower/tosa_network.hpp"
#include "ir/invalid_node.hpp"
#include "ir/printer.hpp"
#include "pipeline/ethosn_partition.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/stopwatch.hpp"
#include "pipeline/tflite_network.hpp"

namespace carina::pipeline {
namespace {

/// Rejects options that have no meaning for a bare compiled network: its inputs and outputs are the NPU's.
Status checkOptions(const Options& options) {
  CARINA_RETURN_IF_ERROR(checkEthosNOptions(options));
  const EndOptions& ends = options.ends;
  std::vector<ProgramIo> types;
  for (const auto* named : {&ends.inputTypes, &ends.outputTypes}) {
    for (const auto& [name, type] : *named) types.push_back(type);
  }
  if (ends.typesAsked && types.empty()) types = {options.inputs, options.outputs};
  // If only one of the two was requested, the other is Float.
  const bool anyInt8 = std::count(types.begin(), types.end(), ProgramIo::Int8) > 0;
  const bool others = std::any_of(types.begin(), types.end(), [&](ProgramIo type) {
    return type != ProgramIo::Int8 && !(type == ProgramIo::Float && anyInt8);
  });
  const char* given = ends.rewrites() ? "--mean, --std, --io-layout, --finish"
                      : others        ? "--io, --io-inputs, --io-outputs"
                                      : nullptr;
  if (given != nullptr) {
    return fail(Code::NeedsWholeNpu, "a .encn has the inputs and outputs of the network, in int8")
        .at(given)
        .withRemedy("write a .pte, which can run parts of the network on the CPU");
  }
  const bool onCpu = !options.cpuOps.empty() || !options.cpuNames.empty() || !options.cpuModules.empty();
  if (!onCpu) return {};
  return fail(Code::NeedsWholeNpu, "a .encn holds networks that run entirely on the NPU")
      .at("--cpu-op")
      .withRemedy("write a .pte, which can run parts of the network on the CPU");
}

EthosNPort portOf(const ir::Value& value) {
  return {value.name, value.type, value.quantization};
}

void takePorts(const ir::Graph& graph, EthosNBuild& build) {
  for (const ir::Value* input : graph.inputs()) build.inputs.push_back(portOf(*input));
  for (const ir::Value* output : graph.outputs()) build.outputs.push_back(portOf(*output));
}

/// For a .tosa or .tflite, which is such a graph already.
void takeGraph(ir::Graph graph, EthosNBuild& build) {
  takePorts(graph, build);
  for (size_t i = 0; i < build.inputs.size(); ++i) build.graphInputs.push_back(i);
  for (size_t i = 0; i < build.outputs.size(); ++i) build.graphOutputs.push_back(i);
  build.tosa = std::move(graph);
}

/// The graph must be a single delegate call.
Status takeDelegate(partition::Partitioned partitioned, EthosNBuild& build) {
  if (!partitioned.wholly || partitioned.delegates.size() != 1 || partitioned.graph.numNodes() != 1) {
    std::vector<Diagnostic> problems;
    for (const partition::Refusal& refusal : partitioned.refusals) {
      problems.push_back({fmt::format("{} does not run on the NPU: {}", refusal.op, refusal.reason),
                          refusal.remedy, "", refusal.node, refusal.code});
    }
    if (problems.empty()) {
      problems.push_back({"the network does not form a single NPU part",
                          "write a .pte, which can run parts of the network on the CPU", "", "",
                          Code::NeedsWholeNpu});
    }
    return Error(std::move(problems));
  }
  const ir::Node& call = *partitioned.delegates[0].call;
  const auto indexIn = [](const std::vector<ir::Value*>& values, const ir::Value* value) -> Result<size_t> {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found == values.end())
      return fail(Code::NeedsWholeNpu, "an input or output of the network is not one of its NPU part");
    return static_cast<size_t>(found - values.begin());
  };
  for (const ir::Value* input : partitioned.graph.inputs()) {
    CARINA_TRY(const size_t index, indexIn(call.operands(), input));
    build.graphInputs.push_back(index);
  }
  for (const ir::Value* output : partitioned.graph.outputs()) {
    CARINA_TRY(const size_t index, indexIn(call.results(), output));
    build.graphOutputs.push_back(index);
  }
  build.tosa = std::move(partitioned.delegates[0].tosa);
  return {};
}

/// The network as one TOSA graph with 8-bit inputs and outputs.
Status takeWhole(Front front, EthosNBuild& build) {
  if (front.isTosa) {
    takeGraph(std::move(front.quantized), build);
    return {};
  }
  CARINA_RETURN_IF_ERROR(exposeIntegers(front.quantized, ProgramIo::Int8, ProgramIo::Int8, 0));
  takePorts(front.quantized, build);
  Stopwatch watch(build.times, "lower");
  CARINA_TRY(partition::Partitioned partitioned, partition::partition(std::move(front.quantized), {}));
  return takeDelegate(std::move(partitioned), build);
}

template <typename Values>
Values reordered(const Values& values, const std::vector<size_t>& order) {
  Values out;
  out.reserve(order.size());
  for (size_t index : order) out.push_back(values[index]);
  return out;
}

/// TOSA represents uint8 as int8.
void nameBytes(const ethosn::Network& network, const std::vector<int32_t>& tensors,
               std::vector<EthosNPort>& ports) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (network.tensors[static_cast<size_t>(tensors[i])].type == ethosn::DataType::U8)
      ports[i].type.dtype = DType::UInt8;
  }
}

Status compileGraph(EthosNBuild& build) {
  Stopwatch watch(build.times, "compile");
  CARINA_TRY(ethosn::Network network, ethosn::networkOfTosa(build.tosa));
  network.inputs = reordered(network.inputs, build.graphInputs);
  network.outputs = reordered(network.outputs, build.graphOutputs);
  nameBytes(network, network.inputs, build.inputs);
  nameBytes(network, network.outputs, build.outputs);
  CARINA_TRY(build.network, ethosn::compileNetwork(network, build.target));
  return {};
}

Result<EthosNBuild> makeBuild(const Options& options) {
  EthosNBuild build;
  CARINA_TRY(build.target, chosenEthosN(options));
  CARINA_RETURN_IF_ERROR(checkOptions(options));
  CARINA_TRY(Front front, runFront(options, build.times));
  if (!front.state.empty()) {
    return fail(Code::NotRepresentable,
                "keeps state between calls, which a compiled Ethos-N network cannot hold")
        .inFile(options.model.string())
        .at("'" + front.state[0].name + "'")
        .withRemedy(
            "make it an input of forward() and return its new value, so that the caller keeps the state");
  }
  if (front.isTfl) return wholeError(*front.tflite, options);
  build.warnings = std::move(front.warnings);
  const std::string file = options.model.string();
  if (auto status = takeWhole(std::move(front), build); !status.ok())
    return std::move(status).error().inFile(file);
  if (options.dump) options.dump("tosa", [&] { return ir::print(build.tosa); });
  if (auto status = compileGraph(build); !status.ok()) return std::move(status).error().inFile(file);
  return build;
}

}  // namespace

Status checkEthosNOptions(const Options& options) {
  const auto refuse = [](bool given, const char* option, const char* why) {
    return given ? Status(fail(Code::NeedsWholeNpu, "{}", why).at(option)) : Status();
  };
  CARINA_RETURN_IF_ERROR(refuse(options.quantization == Quantization::Int16x8, "--quantize",
                                "an Ethos-N has no 16-bit activations: quantize to int8"));
  const char* memories = "an Ethos-N has no memory modes: its SRAM follows from the variant";
  CARINA_RETURN_IF_ERROR(refuse(!options.memoryMode.empty(), "--memory-mode", memories));
  CARINA_RETURN_IF_ERROR(refuse(!options.systemConfig.empty(), "--system-config", memories));
  CARINA_RETURN_IF_ERROR(refuse(!options.configFile.empty(), "--config", memories));
  CARINA_RETURN_IF_ERROR(refuse(options.arenaLimit > 0, "--arena-size", memories));
  CARINA_RETURN_IF_ERROR(refuse(options.cacheLimit > 0, "--cache-size", memories));
  CARINA_RETURN_IF_ERROR(refuse(options.sramLimit > 0, "--max-sram", memories));
  const char* oneWay = "does not apply to an Ethos-N";
  CARINA_RETURN_IF_ERROR(refuse(options.optimize != compiler::Optimize::Performance, "--optimize", oneWay));
  return refuse(options.effort != 2, "--effort", oneWay);
}

Result<EthosNBuild> buildEthosN(const Options& options) {
  return ir::rejectInvalidNodes("", [&] { return makeBuild(options); });
}

Status checkEthosNOutput(const std::filesystem::path& output) {
  CARINA_RETURN_IF_ERROR(checkOutputPath(output));
  if (output.extension() == ".encn") return {};
  return fail(Code::NotRepresentable, "an Ethos-N program cannot be written to '{}'",
              output.filename().string())
      .inFile(output.string())
      .withRemedy("outputs are .pte (program) and .encn (compiled network for Arm's driver library)");
}

Status addEthosNOutput(const EthosNBuild& build, const std::filesystem::path& output, OutputFiles& files) {
  CARINA_RETURN_IF_ERROR(checkEthosNOutput(output));
  const std::vector<uint8_t> bytes = ethosn::writeCompiledNetwork(build.network);
  return files.add(output, std::as_bytes(std::span(bytes)));
}

}  // namespace carina::pipeline
