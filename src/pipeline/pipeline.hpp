// SPDX-License-Identifier: Apache-2.0
// The pipeline as an API: options in, every artifact from the network as read to the program out. The command
// line, the reports and the tests are thin layers on top of it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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
#include "quantize/wide_integers.hpp"

namespace carina::pipeline {

/// How a float network becomes an integer one. Default: Int8 for an NPU, None for the CPU alone. None: the
/// network is prequantized (q/dq nodes or TOSA integers), or stays float.
enum class Quantization : uint8_t { Default, None, Int8, Int16x8 };

/// The form of NPU parts in a .pte: commands for the target, or the TOSA graph, which is compiled at load for
/// the NPU that is present (delivery/at_load.hpp).
enum class Delivery : uint8_t { Compiled, Tosa };

/// Called with the name of a stage and a function that prints the graph after that stage.
using DumpListener = std::function<void(std::string_view stage, const std::function<std::string()>& text)>;

struct Options {
  std::filesystem::path model;  // .pt2, .tflite or .tosa
  /// Build for a .tflite: operators of a .tflite network that are left to the CPU stay TensorFlow Lite
  /// operators.
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
  int weightBits = quantize::kMaxWeightBits;
  std::filesystem::path
      quantizeConfig;  // rules (docs/quantization.md); takes precedence over the options here
  quantize::ObserverSettings observer;
  bool equalize = false, fitWeights = true, correctBiases = true;
  /// Recurrent layers with more steps than this become loops (decompose/recurrence_loops.hpp).
  std::optional<int64_t> unroll;
  std::filesystem::path calibration;  // .npz
  /// Without calibration data: quantize with noise, for queries that do not depend on ranges.
  bool madeUpSamples = false;
  /// Additional methods of the program that return a constant, for applications to query
  /// (get_max_context_len).
  std::vector<std::pair<std::string, int64_t>> constantMethods;
  ProgramIo inputs = ProgramIo::Float, outputs = ProgramIo::Float;
  EndOptions ends;                // exceptions to that; pixels, layout and finish
  bool symmetricIo = false;       // codes of program inputs and outputs have zero point 0
  bool measureSqnr = false;       // record the SQNR of every tensor: runs the calibration samples once more
  bool estimateAccuracy = false;  // fill in Build::accuracy: runs some of the calibration samples once more
  bool requireNpu = false;        // an error unless the network runs entirely on the NPU
  /// No limits on the work of executing the network and its program (base/work_budget.hpp).
  bool trusted = false;
  /// What stays on the CPU: operators ("relu", "aten.add.Tensor"), node names and module paths (both with *
  /// and ?; a module includes its submodules).
  std::vector<std::string> cpuOps, cpuNames, cpuModules;
  int64_t arenaLimit = 0;  // bytes, 0: no additional limit
  int64_t cacheLimit = 0;  // bytes that the cache of a dedicated mode may use, 0: the mode's size
  int64_t sramLimit = 0;   // bytes of static RAM for arena, cache and constants, 0: boards only warn
  /// Keep the float graph and the simulation in the build: required by verify().
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

/// A half-open range of instructions of a program: [first, end).
struct InstructionRange {
  int32_t first = 0, end = 0;
};

/// The graph as the program computes it: CPU nodes in kernel form, delegate calls among them, control flow
/// with its regions.
struct ProgramGraph {
  ir::Graph graph;
  /// For each value defined by a node or by the program's inputs, including those in regions: the program
  /// value that kernels and delegates write.
  std::unordered_map<const ir::Value*, pte::ValueId> storage;
  /// The instructions that compute each node that is not control flow; empty for views.
  std::unordered_map<const ir::Node*, InstructionRange> instructions;
};

/// A part of a network for an Ethos-N.
struct EthosNPart {
  ethosn::Network operations;
  ethosn::CompiledNetwork compiled;
  std::vector<ethosn::CompiledPass> passes;
};

struct TfliteSource;  // pipeline/tflite_network.hpp

/// What remains of a network read from .tflite: its operators around delegate calls.
struct TfliteRest {
  std::shared_ptr<const TfliteSource> source;
  ir::Graph graph;  // of the tfl dialect; delegate calls in the order of Build::compiled
};

/// The file's name for the operator of a node of such a graph: "SVDF".
std::string tfliteName(const ir::Node& node);

/// One operator of the network as exported.
struct SourceNode {
  std::string name, op;            // "relu_1", "aten.relu.default"
  std::string modulePath, source;  // "features.3", "model.py:42"; empty when unknown
};

/// The operator of each node by name; the texts are those of `nodes`.
std::unordered_map<std::string_view, std::string_view> operatorsByName(std::span<const SourceNode> nodes);

/// Everything that one compilation produced.
struct Build {
  Options options;
  std::optional<npu::Machine> machine;   // the Ethos-U, if the target is one
  std::optional<ethosn::Target> ethosN;  // the Ethos-N, if the target is one
  std::optional<ir::Graph>
      source;                     // the float aten graph as read and decomposed; none for quantized networks
  std::vector<SourceNode> nodes;  // of a .pt2 or .tflite, as in the file
  std::optional<ir::Graph> simulation;  // the aten graph with quantize and dequantize nodes; none for .tosa
  std::optional<quantize::Report> quantization;     // if the quantizer ran
  std::optional<quantize::Accuracy> accuracy;       // of the simulation, with Options::estimateAccuracy
  partition::Partitioned partitioned;               // the q/dq graph with delegate calls
  std::vector<compiler::CompiledProgram> compiled;  // per delegate of `partitioned`, for an Ethos-U
  std::vector<EthosNPart> ethosNParts;              // the same for an Ethos-N
  bool integerIo = false;                           // program inputs are codes where the network has floats
  ProgramEnds ends;                                 // where they differ from the network's
  ir::State state;                   // of `source`, `simulation`, `partitioned.graph` and `computed.graph`
  std::optional<TfliteRest> tflite;  // of a .tflite for an Ethos-U
  pte::Program program;              // no methods: only a .tflite can hold what is left to the CPU
  ProgramGraph computed;             // what `program` computes, node by node
  std::vector<Diagnostic> warnings;  // for the user to know, although the program was built
  std::vector<StageTime> times;

  const ir::Graph& graph() const { return partitioned.graph; }
  bool hasNpu() const { return machine || ethosN; }
};

/// The quantization that the options select for their target.
Quantization quantizationOf(const Options& options);

/// The result of reading, decomposing and quantizing: the q/dq graph that partitioning starts from, and the
/// float graph if there is one.
struct Front {
  std::vector<SourceNode> nodes;  // of a .pt2 or .tflite
  ir::State state;                // of `source` and `quantized`
  std::optional<ir::Graph> source;
  ir::Graph quantized;
  std::optional<quantize::Report> quantization;
  std::optional<quantize::Accuracy> accuracy;  // with Options::estimateAccuracy, if the quantizer ran
  std::vector<std::string> keptFloat;          // source nodes that rules keep off the NPU
  quantize::WideIntegers wideIntegers;         // nodes that need more than 32 bits
  PortTypes inputs, outputs;                   // according to options and rules
  ProgramEnds ends;                            // of `source` and `quantized`
  std::vector<Diagnostic> warnings;
  bool isTosa = false;  // `quantized` is a tosa graph: a .tosa, or a .tflite lowered
  bool isTfl = false;   // `quantized` is a graph of the tfl dialect: a .tflite with parts for the CPU
  std::shared_ptr<const TfliteSource> tflite;  // of a .tflite
  /// For such a graph: the types of the program's inputs and outputs, which may be float where the graph has
  /// codes, and uint8 where it has int8. Empty: the graph's own.
  std::vector<DType> inputTypes, outputTypes;
};
Result<Front> runFront(const Options& options, std::vector<StageTime>& times);
/// The same for an aten graph as exported, without state.
Result<Front> frontOf(const Options& options, ir::Graph graph, std::vector<StageTime>& times);

/// All stages, from the options to a program.
Result<Build> build(const Options& options);
/// From a quantized network to a program. `times`: of the stages before. `known`: weights of the programs
/// with which it shares a file (null: none); on return, also its own.
Result<Build> buildFrom(Front front, const Options& options, std::vector<StageTime> times,
                        compiler::KnownWeights* known = nullptr);

/// Writes the program to a file of the kind given by the extension of `output`: .pte, .tflite (a model with
/// `ethos-u` operators), .tosa (the only delegate's graph), .bin (the only delegate's blob). Errors: unknown
/// extension; for the latter two, more or less than one delegate; for a .tflite of a network that was not
/// read from one, the same and anything in addition to it.
Status writeOutput(const Build& build, const std::filesystem::path& output);
/// The same, to be written together with other files.
Status addOutput(const Build& build, const std::filesystem::path& output, OutputFiles& files);
/// Bytes of the program: as a .pte, or as a .tflite if only that can hold it.
Result<int64_t> programBytes(const Build& build);
/// To be called before compilation: whether writeOutput can write there, as far as the name indicates.
Status checkOutput(const std::filesystem::path& output);

/// Inputs of the graph as ports that arrays must match.
std::vector<Port> inputPorts(const ir::Graph& graph);

}  // namespace carina::pipeline
