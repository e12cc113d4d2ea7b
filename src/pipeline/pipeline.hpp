// SPDX-License-Identifier: Apache-2.0
// The pipeline as an API: options in, every artifact from the network as read to the program out. The command
// line, the reports and the tests are thin users of this.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "compiler/compiler.hpp"
#include "ethosn/compiler/compile.hpp"
#include "ir/graph.hpp"
#include "ir/state.hpp"
#include "npu/targets/target.hpp"
#include "partition/partition.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/program_ends.hpp"
#include "pte/method_builder.hpp"
#include "quantize/accuracy.hpp"
#include "quantize/quantize.hpp"

namespace carina::pipeline {

/// How a float network becomes an integer one. Default: Int8 for an NPU, None for the CPU alone. None: the
/// network carries its quantization (q/dq nodes or TOSA integers), or stays float.
enum class Quantization : uint8_t { Default, None, Int8, Int16x8 };

/// What of an NPU part a .pte carries: commands for the target, or the TOSA graph, which whoever loads the
/// program compiles for the NPU that is there (delivery/at_load.hpp).
enum class Delivery : uint8_t { Compiled, Tosa };

/// Called with a stage's name and a function that prints the graph as it stands after that stage.
using DumpListener = std::function<void(std::string_view stage, const std::function<std::string()>& text)>;

struct Options {
  std::filesystem::path model;  // .pt2, .tflite or .tosa
  /// The build is for a .tflite: of a network that came as one, what is left to the CPU stays its operators.
  bool tflite = false;
  std::string program;  // which program of a .pt2 with several; empty: the only one, or "model"
  /// Values for symbols in the sizes of a .pt2's inputs (docs/dynamic-shapes.md).
  std::map<std::string, int64_t> sizes;
  std::string target;                // "ethos-u55-128", ... or "cpu"
  std::string systemConfig;          // empty: the target's default
  std::string memoryMode;            // empty: the target's default
  std::filesystem::path configFile;  // vela.ini with further system configurations and memory modes
  Quantization quantization = Quantization::Default;
  bool perChannel = true;
  int weightBits = quantize::kMostWeightBits;
  std::filesystem::path
      quantizeConfig;  // rules (docs/quantization.md); what it says holds over the options here
  quantize::ObserverSettings observer;
  bool equalize = false, fitWeights = true, correctBiases = true;
  /// Recurrent layers over more steps than that are loops (decompose/recurrence_loops.hpp).
  std::optional<int64_t> unroll;
  std::filesystem::path calibration;  // .npz
  /// Without calibration data: quantize by noise, for questions that ranges do not decide.
  bool madeUpSamples = false;
  /// Further methods of the program, which return a number: what applications ask it (get_max_context_len).
  std::vector<std::pair<std::string, int64_t>> constantMethods;
  ProgramIo inputs = ProgramIo::Float, outputs = ProgramIo::Float;
  EndOptions ends;                // what departs from that, and pixels, layout and finish
  bool symmetricIo = false;       // codes of program inputs and outputs have zero point 0
  bool measureSqnr = false;       // fill in the SQNR of every tensor: runs the calibration samples once more
  bool estimateAccuracy = false;  // fill in Build::accuracy: runs some of the calibration samples once more
  bool requireNpu = false;        // an error unless the network is wholly on the NPU
  /// No limits on what executing the network, and a program in its place, may ask for (base/work_budget.hpp).
  bool trusted = false;
  /// What stays on the CPU: operators ("relu", "aten.add.Tensor"), node names and module paths (both with *
  /// and ?; a module includes what is below it).
  std::vector<std::string> cpuOps, cpuNames, cpuModules;
  int64_t arenaLimit = 0;  // bytes, 0: no limit of its own
  int64_t cacheLimit = 0;  // bytes that the cache of a dedicated mode may take, 0: what the mode offers
  int64_t sramLimit = 0;  // bytes that arena, cache and constants may take of static RAM, 0: boards only warn
  /// Keep the float graph and the simulation in the build: verify() needs them.
  bool keepSources = true;
  compiler::Optimize optimize = compiler::Optimize::Performance;
  Delivery delivery = Delivery::Compiled;
  int effort = 2;               // compiler::Options::effort
  quantize::Progress progress;  // calibration samples
  DumpListener dump;
};

/// Wall time of one stage.
struct StageTime {
  std::string_view stage;
  double seconds = 0;
};

/// Instructions of a program: from `first` up to, without, `end`.
struct InstructionRange {
  int32_t first = 0, end = 0;
};

/// The graph as the program computes it: CPU nodes in the form of kernels, delegate calls among them, control
/// flow with its regions.
struct ProgramGraph {
  ir::Graph graph;
  /// The program value that kernels and delegates write for each value that a node or the program's inputs
  /// bring, in regions, too.
  std::unordered_map<const ir::Value*, pte::ValueId> storage;
  /// What computes each node that is no control flow: nothing for views.
  std::unordered_map<const ir::Node*, InstructionRange> instructions;
};

/// A part of a network for an Ethos-N.
struct EthosNPart {
  ethosn::Network operations;
  ethosn::CompiledNetwork compiled;
  std::vector<ethosn::CompiledPass> passes;
};

struct TfliteSource;  // pipeline/tflite_network.hpp

/// What is left of a network that came as .tflite: its operators around delegate calls.
struct TfliteRest {
  std::shared_ptr<const TfliteSource> source;
  ir::Graph graph;  // of the tfl dialect; delegate calls in the order of Build::compiled
};

/// What the file calls the operator of a node of such a graph: "SVDF".
std::string tfliteName(const ir::Node& node);

/// Everything that one compilation made.
struct Build {
  Options options;
  std::optional<npu::Machine> machine;   // the Ethos-U, for a target that is one
  std::optional<ethosn::Target> ethosN;  // the Ethos-N, for a target that is one
  std::optional<ir::Graph>
      source;  // the float aten graph as read and decomposed; none for quantized networks
  std::optional<ir::Graph> simulation;  // the aten graph with quantize and dequantize nodes; none for .tosa
  std::optional<quantize::Report> quantization;     // when the quantizer ran
  std::optional<quantize::Accuracy> accuracy;       // of the simulation, with Options::estimateAccuracy
  partition::Partitioned partitioned;               // the q/dq graph with delegate calls
  std::vector<compiler::CompiledProgram> compiled;  // per delegate of `partitioned`, for an Ethos-U
  std::vector<EthosNPart> ethosNParts;              // the same for an Ethos-N
  bool integerIo = false;                           // the program takes codes where the network takes numbers
  ProgramEnds ends;                                 // where they are not the network's
  ir::State state;                   // of `source`, `simulation`, `partitioned.graph` and `computed.graph`
  std::optional<TfliteRest> tflite;  // of a .tflite for an Ethos-U
  pte::Program program;              // no methods: only a .tflite can hold what is left to the CPU
  ProgramGraph computed;             // what `program` computes, node by node
  std::vector<Diagnostic> warnings;  // what a person should know, though the program is made
  std::vector<StageTime> times;

  const ir::Graph& graph() const { return partitioned.graph; }
  bool hasNpu() const { return machine || ethosN; }
};

/// What the options' quantization means for their target.
Quantization quantizationOf(const Options& options);

/// One operator of the network as it was exported.
struct SourceNode {
  std::string name, op;            // "relu_1", "aten.relu.default"
  std::string modulePath, source;  // "features.3", "model.py:42"; empty when unknown
};

/// Reads, decomposes and quantizes: the q/dq graph that partitioning starts from, and the float graph when
/// there is one.
struct Front {
  std::vector<SourceNode> nodes;  // of a .pt2 or .tflite
  ir::State state;                // of `source` and `quantized`
  std::optional<ir::Graph> source;
  ir::Graph quantized;
  std::optional<quantize::Report> quantization;
  std::optional<quantize::Accuracy> accuracy;  // with Options::estimateAccuracy, when the quantizer ran
  std::vector<std::string> keptFloat;          // source nodes that rules keep off the NPU
  PortTypes inputs, outputs;                   // as options and rules say
  ProgramEnds ends;                            // of `source` and `quantized`
  std::vector<Diagnostic> warnings;
  bool isTosa = false;  // `quantized` is a tosa graph: a .tosa, or a .tflite lowered
  bool isTfl = false;   // `quantized` is a graph of the tfl dialect: a .tflite with parts for the CPU
  std::shared_ptr<const TfliteSource> tflite;  // of a .tflite
  /// Of such a graph: what the program has as inputs and outputs, which may be float where the graph has
  /// codes, and uint8 where it has int8. Empty: the graph's own.
  std::vector<DType> inputTypes, outputTypes;
};
Result<Front> runFront(const Options& options, std::vector<StageTime>& times);
/// The same for an aten graph as it was exported, without state.
Result<Front> frontOf(const Options& options, ir::Graph graph, std::vector<StageTime>& times);

/// The whole way to a program.
Result<Build> build(const Options& options);
/// From a quantized network to a program. `times`: of the stages before. `known`: weights of the programs
/// that it shares a file with (null: none), and its own behind the call.
Result<Build> buildFrom(Front front, const Options& options, std::vector<StageTime> times,
                        compiler::KnownWeights* known = nullptr);

/// The program as a file of the kind that the extension of `output` names: .pte, .tflite (a model with
/// `ethos-u` operators), .tosa (the one delegate's graph), .bin (the one delegate's blob). Errors: unknown
/// extension, more or less than one delegate for the latter two; for .tflite, of networks that did not come
/// as one, the same and something beside it.
Status writeOutput(const Build& build, const std::filesystem::path& output);
/// The same, to appear with other files.
Status addOutput(const Build& build, const std::filesystem::path& output, OutputFiles& files);
/// Bytes of the program: as a .pte, or as the .tflite that alone can hold it.
Result<int64_t> programBytes(const Build& build);
/// Asked before anything is compiled: whether writeOutput could write there, as far as the name tells.
Status checkOutput(const std::filesystem::path& output);

/// Inputs of the graph as arrays must fit them.
std::vector<Port> inputPorts(const ir::Graph& graph);

}  // namespace carina::pipeline
