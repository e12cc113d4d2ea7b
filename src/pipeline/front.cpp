// SPDX-License-Identifier: Apache-2.0
// Reading and quantizing a network.
#include <limits>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "base/file.hpp"
#include "base/idle_memory.hpp"
#include "base/npy.hpp"
#include "decompose/decompose.hpp"
#include "decompose/empty_tensors.hpp"
#include "decompose/recurrence_loops.hpp"
#include "decompose/regions.hpp"
#include "ethosn/targets/variant.hpp"
#include "ir/footprint.hpp"
#include "ir/invalid_node.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "lower/single_precision.hpp"
#include "npu/targets/target.hpp"
#include "partition/coarse_functions.hpp"
#include "partition/requests.hpp"
#include "partition/unlowered.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/float_network.hpp"
#include "pipeline/quantizer_options.hpp"
#include "pipeline/stopwatch.hpp"
#include "pipeline/tflite_network.hpp"
#include "pipeline/work_limits.hpp"
#include "pt2/exported_program.hpp"
#include "quantize/fold_batch_norm.hpp"
#include "quantize/inside.hpp"
#include "quantize/prequantized.hpp"
#include "quantize/sample_doubts.hpp"
#include "quantize/together.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

void dump(const Options& options, std::string_view stage, const ir::Graph& graph) {
  if (options.dump) options.dump(stage, [&] { return ir::print(graph); });
}

bool hasFloats(const ir::Graph& graph) {
  for (const auto* ends : {&graph.inputs(), &graph.outputs()}) {
    if (std::any_of(ends->begin(), ends->end(), [](const ir::Value* end) { return isFloat(end->dtype()); }))
      return true;
  }
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* result : node->results()) {
      if (isFloat(result->dtype())) return true;
    }
  }
  return false;
}

/// One sample that hardly any operator has trouble with: reals between 0.1 and 0.9, bytes 255 times that,
/// other integers 0.
std::vector<quantize::Sample> madeUpSamples(const ir::Graph& graph) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> reals(0.1f, 0.9f);
  quantize::Sample sample;
  for (const ir::Value* input : graph.inputs()) {
    Tensor tensor = Tensor::zeros(input->dtype(), input->shape());
    if (input->dtype() == DType::Float32) {
      for (float& value : tensor.mutableAs<float>()) value = reals(random);
    } else if (input->dtype() == DType::UInt8) {
      for (uint8_t& value : tensor.mutableAs<uint8_t>()) value = static_cast<uint8_t>(255 * reals(random));
    }
    sample.push_back(std::move(tensor));
  }
  return {std::move(sample)};
}

// Limit for the tensors live at once while the network runs in float; a program needs a quarter of that.
constexpr int64_t kMaxMemory = int64_t{1} << 30;

/// Prevents calibration from filling this machine's memory with networks that are too large for any NPU.
Status checkMemory(const ir::Graph& graph) {
  const ir::Footprint most = ir::footprintOf(graph);
  if (most.bytes <= kMaxMemory) return {};
  return fail(Code::TooLarge, "the network's tensors need {} MiB at once, more than {} MiB", most.bytes >> 20,
              kMaxMemory >> 20)
      .at(most.at ? most.at->where() : "inputs")
      .withRemedy("make its tensors smaller, or split the network");
}

Diagnostic computedInFloat32(const Options& options, const std::vector<DType>& types) {
  std::string names;
  for (DType type : types) names += fmt::format("{}{}", names.empty() ? "" : ", ", dtypeName(type));
  return {fmt::format("computes in {}: float32 is used instead, also for its inputs and outputs", names), "",
          options.model.string(), ""};
}

std::vector<SourceNode> sourceNodes(const ir::Graph& graph) {
  std::vector<SourceNode> nodes;
  aten::forEachNode(graph, [&](const ir::Node& node) {
    if (!node.location() || node.results().empty()) return;
    const ir::Location& location = *node.location();
    nodes.push_back({location.name, std::string(node.opName()), location.modulePath, location.source});
  });
  return nodes;
}

/// `ends`: of `graph`.
Result<std::vector<quantize::Sample>> readSamples(const Options& options, const ir::Graph& graph,
                                                  const ir::State& state, const ProgramEnds& ends) {
  if (options.calibration.empty() && options.madeUpSamples) return madeUpSamples(graph);
  if (ir::callerInputs(graph, state) == 0) return std::vector<quantize::Sample>{quantize::Sample{}};
  if (options.calibration.empty()) {
    return fail(Code::BadCalibration, "the network is to be quantized, but there is no calibration data")
        .inFile(options.model.string())
        .withRemedy(
            "give --calibrate DATA.npz with arrays calib0, calib1, ... (samples on the leading axis), or, "
            "for an already quantized network, --quantize none");
  }
  CARINA_TRY(NamedTensors arrays, readArrays(options.calibration));
  if (arrays.size() == 1 && arrays[0].first.empty()) arrays[0].first = "calib0";  // a bare .npy
  auto given = ends.asProgram(std::move(arrays));
  if (!given) return std::move(given).error().inFile(options.calibration.string());
  auto samples = quantize::samplesFromArrays(graph, *given, ir::callerInputs(graph, state));
  if (!samples) return std::move(samples).error().inFile(options.calibration.string());
  return samples;
}

/// Warns of samples that are readable but probably wrong.
void warnOfSamples(const Options& options, const ir::Graph& graph, std::span<const quantize::Sample> samples,
                   std::span<const Tensor> examples, std::vector<Diagnostic>& warnings) {
  if (options.calibration.empty()) return;
  for (Diagnostic& doubt : quantize::sampleWarnings(graph, samples, examples)) {
    doubt.file = options.calibration.string();
    warnings.push_back(std::move(doubt));
  }
}

/// Integer graphs keep their inputs and outputs. `own`: their layout.
Status refuseEnds(const Options& options, const char* kind, Layout own) {
  const EndOptions& ends = options.ends;
  const bool otherLayout = ends.layout != Layout::Network && ends.layout != own;
  const char* given = otherLayout                                             ? "--io-layout"
                      : ends.pixels()                                         ? "--mean and --std"
                      : ends.finish != Finish::None                           ? "--finish"
                      : PortTypes(options.inputs).contains(ProgramIo::UInt8)  ? "--io-inputs uint8"
                      : !ends.inputTypes.empty() || !ends.outputTypes.empty() ? "a type by NAME=TYPE"
                                                                              : nullptr;
  if (given == nullptr) return {};
  return fail(Code::OptionDoesNotApply, "the inputs and outputs of a {} cannot be changed", kind)
      .at(given)
      .withRemedy("leave it out, or compile the network as .pt2");
}

Result<Front> readTosa(const Options& options, std::vector<StageTime>& times) {
  Stopwatch watch(times, "read");
  Front front;
  front.isTosa = true;
  CARINA_TRY(front.quantized, tosa_io::readTosa(options.model));
  if (Status fits = checkTensors(front.quantized, budgetOf(options)); !fits.ok())
    return std::move(fits).error().inFile(options.model.string());
  CARINA_RETURN_IF_ERROR(refuseEnds(options, ".tosa graph", Layout::Network));
  if (options.target == "cpu") {
    return fail(Code::NeedsWholeNpu, "a TOSA graph can only be compiled for an NPU")
        .inFile(options.model.string())
        .withRemedy("name an NPU with --target, or run the graph itself: carina run");
  }
  if (hasFloats(front.quantized)) {
    return fail(Code::NotQuantized, "the graph computes in floating point, but {} computes in integers",
                options.target)
        .inFile(options.model.string())
        .withRemedy("export an integer TOSA graph, or compile the .pt2 with --quantize int8");
  }
  dump(options, "read", front.quantized);
  return front;
}

/// The state of an exported program, as far as it appears in the graph's inputs and outputs.
ir::State stateOf(pt2::ExportedProgram& program) {
  ir::State state;
  for (pt2::ExposedBuffer& buffer : program.exposedBuffers) {
    const auto at = [&](const auto& all) {
      return all.size() - program.exposedBuffers.size() + state.size();
    };
    CARINA_CHECK(
        buffer.graphInput == at(program.graph.inputs()) && buffer.graphOutput == at(program.graph.outputs()),
        "exposed buffers stand behind the program's own inputs and outputs");
    state.push_back({buffer.name, std::move(buffer.initial)});
  }
  return state;
}

/// The initial contents, in the types that the graph's inputs now have.
std::vector<Tensor> initialState(const ir::Graph& graph, const ir::State& state) {
  std::vector<Tensor> initial;
  for (size_t i = 0; i < state.size(); ++i)
    initial.push_back(convert(state[i].initial, graph.inputs()[ir::callerInputs(graph, state) + i]->dtype()));
  return initial;
}

/// Samples of the caller's inputs as the calls of one sequence. `common`: continues from what the previous
/// methods left, and stores its own final state.
Result<std::vector<quantize::Sample>> callsOf(const Options& options, const ir::Graph& graph,
                                              const ir::State& state, std::vector<quantize::Sample> samples,
                                              CommonState* common, WorkBudget* loops) {
  const size_t callers = ir::callerInputs(graph, state);
  if (state.empty() || samples.front().size() != callers) return samples;  // synthetic ones include it
  std::vector<Tensor> start = initialState(graph, state);
  for (size_t i = 0; common && i < state.size(); ++i) {
    const auto left = common->contents.find(state[i].name);
    if (left != common->contents.end() && left->second.shape() == start[i].shape())
      start[i] = convert(left->second, start[i].dtype());
  }
  ir::StateHolder holder(std::move(start));
  auto calls = quantize::withState(graph, holder, samples, loops);
  if (!calls) return std::move(calls).error().inFile(options.model.string());
  for (size_t i = 0; common && i < state.size(); ++i) common->contents[state[i].name] = holder.now()[i];
  return calls;
}

/// Warns of results that the program omits, for users who count its outputs.
void warnOfNumbers(const pt2::ExportedProgram& program, const Options& options,
                   std::vector<Diagnostic>& warnings) {
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const pt2::ProgramOutput& output = program.outputs[i];
    if (output.graphOutput) continue;
    warnings.push_back(
        {fmt::format("result {} is {}, not a tensor: the program omits it, and later results move up", i,
                     output.constant),
         "", options.model.string(), ""});
  }
}

/// The caller's inputs with the dimensions set by Options::sizes; empty if there are none.
std::vector<SizedInput> sizedInputs(const pt2::ExportedProgram& program) {
  std::vector<SizedInput> sized;
  bool any = false;
  for (const pt2::ProgramInput& input : program.inputs) {
    if (input.value == nullptr) continue;
    sized.push_back({input.value->shape(), input.chosen});
    any = any || !input.chosen.empty();
  }
  return any ? sized : std::vector<SizedInput>{};
}

/// A .pt2 as exported.
struct Exported {
  ir::Graph graph;
  std::map<std::string, std::string> classes = {};  // Python classes by module path, "" for the root
  std::vector<Diagnostic> warnings = {};
  std::vector<Tensor> examples = {};  // inputs that it was exported with, or empty
  ir::State state = {};               // corresponds to its last inputs and outputs
  std::vector<SizedInput> sized = {};
};

Result<Exported> readPt2(const Options& options, std::vector<StageTime>& times,
                         std::vector<std::string> sharedState = {}) {
  Exported exported;
  {
    Stopwatch watch(times, "read");
    pt2::ReadOptions reading{.model = options.program, .state = pt2::StatePolicy::Expose};
    reading.examples = !options.calibration.empty();
    reading.sharedState = std::move(sharedState);
    reading.sizes = options.sizes;
    CARINA_TRY(pt2::ExportedProgram program, pt2::readExportedProgram(options.model, reading));
    exported.examples = std::move(program.examples);
    exported.state = stateOf(program);
    exported.sized = sizedInputs(program);
    exported.graph = std::move(program.graph);
    exported.classes = std::move(program.moduleClasses);
    exported.warnings = std::move(program.warnings);
    warnOfNumbers(program, options, exported.warnings);
  }
  dump(options, "read", exported.graph);
  return exported;
}

/// Options of the quantizer that change nothing in this network; `read`: whether calibration samples were
/// read.
void warnOfIdleQuantizer(const Options& options, bool prequantized, bool read,
                         std::vector<Diagnostic>& warnings) {
  const auto warn = [&](const char* option, const char* why, const char* remedy) {
    warnings.push_back({fmt::format("has no effect: {}", why), remedy, "", option});
  };
  const bool asked =
      options.quantization != Quantization::Default && options.quantization != Quantization::None;
  if (prequantized && asked) {
    warn("--quantize", "the network is already quantized and keeps its codes",
         "leave the option out, or export the network in float");
  }
  if (options.weightBits != quantize::kMaxWeightBits) {
    if (prequantized) {
      warn("--weight-bits", "the network is already quantized and keeps its codes",
           "leave the option out, or export the network in float");
    } else if (quantizationOf(options) == Quantization::None) {
      warn("--weight-bits", "nothing is quantized", "give --quantize int8 or int16x8");
    }
  }
  if (options.calibration.empty() || read) return;
  if (prequantized) {
    warn("--calibrate", "the network is already quantized, and none of its ranges is missing",
         "export the network in float to choose ranges; 'carina verify' takes samples with --input");
  } else if (quantizationOf(options) == Quantization::None) {
    warn("--calibrate", "nothing is quantized",
         options.quantization == Quantization::None
             ? "leave out --quantize none; 'carina verify' takes samples with --input"
             : "give --quantize int8 or int16x8; 'carina verify' takes samples with --input");
  }
}

/// The units to quantize internally: operators without an integer form of their own, and those whose form is
/// less exact than the codes around them.
std::vector<partition::Unit> unitsToQuantize(const ir::Graph& graph) {
  std::vector<partition::Unit> units = partition::unloweredUnits(graph);
  std::unordered_set<const ir::Node*> found;
  for (const partition::Unit& unit : units) found.insert(unit.nodes.front());
  for (partition::Unit& unit : partition::findUnits(graph).units) {
    if (quantize::hasFunctionOf16Bits(unit.nodes) && found.count(unit.nodes.front()) == 0 &&
        partition::isClosed(unit))
      units.push_back(std::move(unit));
  }
  return units;
}

/// Decomposes and quantizes internally those operators of a prequantized network that have no integer form of
/// their own. If that does not help, they stay as they are; if it is impossible, with a warning. `read`:
/// whether calibration samples were used.
Result<ir::Graph> quantizedInside(const Options& options, ir::Graph graph, const quantize::Options& settings,
                                  const ir::State& state, const ProgramEnds& ends,
                                  std::vector<Diagnostic>& warnings, bool& read) {
  CARINA_RETURN_IF_ERROR(partition::separateDequantizes(graph));
  std::unordered_set<const ir::Node*> closed;
  for (const partition::Unit& unit : partition::findUnits(graph).units) {
    if (partition::isClosed(unit)) closed.insert(unit.nodes.begin(), unit.nodes.end());
  }
  CARINA_RETURN_IF_ERROR(
      quantize::foldBatchNormsOf(graph, [&](const ir::Node& node) { return closed.count(&node) != 0; }));
  std::vector<partition::Unit> units = unitsToQuantize(graph);
  std::vector<quantize::Sample> samples;
  if (!units.empty() && !options.calibration.empty()) {
    CARINA_TRY(samples, readSamples(options, graph, state, ends));
    if (!state.empty()) {
      CARINA_TRY(samples,
                 quantize::withState(graph, initialState(graph, state), samples, settings.loops.get()));
    }
    read = true;
  }
  while (!units.empty()) {
    std::unordered_map<const ir::Value*, ir::Value*> mapping;
    ir::Graph trial = graph.clone(&mapping);
    std::unordered_map<const ir::Node*, size_t> unitOf;  // of nodes of `trial`
    std::unordered_set<const ir::Node*> nodes;
    for (size_t u = 0; u < units.size(); ++u) {
      for (const ir::Node* node : units[u].nodes) {
        if (node->results().empty()) continue;
        const ir::Node* copy = mapping.at(node->result())->producer();
        unitOf.emplace(copy, u);
        if (!partition::isQuantize(*node) && !partition::isDequantize(*node)) nodes.insert(copy);
      }
    }
    if (const Status status = quantize::quantizeInside(trial, nodes, settings, samples, settings.loops);
        !status.ok()) {
      const Diagnostic& why = status.error().diagnostics().front();
      warnings.push_back(
          {fmt::format("operators that are quantized as a whole keep float values inside{}{}: {}",
                       why.place.empty() ? "" : ", because of ", why.place, why.message),
           why.remedy, options.model.string(), ""});
      break;
    }
    CARINA_RETURN_IF_ERROR(partition::separateDequantizes(trial));
    std::set<size_t> failed;
    for (const partition::Unit& unit : partition::unloweredUnits(trial)) {
      for (const ir::Node* node : unit.nodes) {
        if (const auto from = unitOf.find(node); from != unitOf.end()) failed.insert(from->second);
      }
    }
    if (failed.empty()) return trial;
    for (auto u = failed.rbegin(); u != failed.rend(); ++u)
      units.erase(units.begin() + static_cast<std::ptrdiff_t>(*u));
  }
  return graph;
}

quantize::Precision precisionOf(ProgramIo io) {
  switch (io) {
    case ProgramIo::Float:
      return quantize::Precision::Float;
    case ProgramIo::Int8:
    case ProgramIo::UInt8:
      return quantize::Precision::Int8;
    case ProgramIo::Int16:
      return quantize::Precision::Int16x8;
  }
  CARINA_UNREACHABLE("program input or output type");
}

/// Types of the program's inputs and outputs, with individual exceptions on top.
Status settleTypes(const Options& options, const ir::Graph& graph, Front& front,
                   QuantizerOptions& quantizer) {
  const auto inputs = std::span<ir::Value* const>(graph.inputs()).first(ir::callerInputs(graph, front.state));
  const auto outputs =
      std::span<ir::Value* const>(graph.outputs()).first(ir::callerOutputs(graph, front.state));
  CARINA_TRY(front.inputs, portTypes(quantizer.inputs, options.ends.inputTypes, inputs, "in"));
  CARINA_TRY(front.outputs, portTypes(quantizer.outputs, options.ends.outputTypes, outputs, "out"));
  for (Diagnostic& idle : idleTypes({options.inputs, front.inputs.single}, inputs,
                                    {options.outputs, front.outputs.single}, outputs))
    front.warnings.push_back(std::move(idle));
  for (const auto& [index, type] : front.inputs.single)
    quantizer.options.inputPrecisions[index] = precisionOf(type);
  for (const auto& [index, type] : front.outputs.single)
    quantizer.options.outputPrecisions[index] = precisionOf(type);
  return {};
}

/// A network that stays in float has no codes for inputs or outputs, but accepts pixels.
Status refuseCodesOfFloats(const Options& options, const ir::Graph& graph, const Front& front) {
  const auto refuse = [](const char* option) {
    return fail(Code::OptionDoesNotApply,
                "the program computes in float: its inputs and outputs have no codes")
        .at(option)
        .withRemedy(
            "quantize it (--quantize int8 --calibrate DATA.npz), or leave the option out; for pixels, give "
            "--io-inputs uint8 with --mean or --std");
  };
  for (size_t i = 0; i < ir::callerInputs(graph, front.state); ++i) {
    const ProgramIo type = front.inputs.of(i);
    const bool pixels = type == ProgramIo::UInt8 && options.ends.pixels();
    if (type != ProgramIo::Float && !pixels && isFloat(graph.inputs()[i]->dtype()))
      return refuse("--io-inputs");
  }
  for (size_t i = 0; i < ir::callerOutputs(graph, front.state); ++i) {
    if (front.outputs.of(i) != ProgramIo::Float && isFloat(graph.outputs()[i]->dtype()))
      return refuse("--io-outputs");
  }
  return {};
}

/// Whether long recurrences may be loops.
enum class Recurrences : uint8_t { MayLoop, Unrolled };

/// `coded`: the recurrences end up quantized, and both forms are to have the same codes.
decompose::LoopOptions loopsFor(const Options& options, bool coded, Recurrences recurrences) {
  decompose::LoopOptions loops;
  // An Ethos-N handles unrolled code better if it was quantized unrolled.
  loops.unrollLater = coded && !ethosn::isEthosNName(options.target);
  if (options.unroll) loops.mostUnrolled = *options.unroll;
  if (recurrences == Recurrences::Unrolled) loops = {std::numeric_limits<int64_t>::max(), false};
  return loops;
}

/// Warns that recurrences are unrolled that would otherwise be loops.
Status warnOfUnrolled(const Options& options, const ir::Graph& graph, bool coded,
                      std::vector<Diagnostic>& warnings) {
  ir::Graph copy = graph.clone();
  decompose::LoopOptions loops = loopsFor(options, coded, Recurrences::MayLoop);
  loops.unrollLater = false;
  CARINA_RETURN_IF_ERROR(decompose::loopRecurrences(copy, loops));
  for (const ir::Node* node : copy.nodes()) {
    if (!node->is(aten::scanDef())) continue;
    warnings.push_back({"recurrences are unrolled for the precision search, but would otherwise be loops",
                        "write the rules (--write-rules FILE) and compile with them (--quantize-config FILE)",
                        options.model.string(), "--auto-precision"});
    break;
  }
  return {};
}

/// What the NPU computes with tables that are too coarse. CPU kernels and Ethos-N have other forms.
std::vector<partition::CoarseFunction> coarseFunctionsOf(const Options& options, const ir::Graph& graph) {
  if (options.target == "cpu" || ethosn::isEthosNName(options.target)) return {};
  return partition::coarseFunctions(graph);
}

void addLast(std::vector<Diagnostic>& warnings, const std::vector<Diagnostic>& last) {
  warnings.insert(warnings.end(), last.begin(), last.end());
}

bool samplesAtComputedPositions(const ir::Node& node) {
  const bool samples = ir::isa<aten::GridSampler>(&node) || ir::isa<aten::GridSampler2d>(&node);
  return samples && !node.operands()[1]->isConstant();
}

/// Whether samplers stay on the CPU: an NPU that cannot gather would multiply by matrices of all positions
/// and elements.
bool keepsSamplers(const Options& options, const ir::Graph& graph) {
  const auto npu = npu::findTarget(options.target);
  if (npu.ok() && (*npu)->architecture().indexedDma) return false;
  bool any = false;
  aten::forEachNode(graph, [&](const ir::Node& node) { any = any || samplesAtComputedPositions(node); });
  return any;
}

Result<FloatNetwork> makeFloatNetwork(const Options& options, Exported exported,
                                      std::vector<StageTime>& times, Recurrences recurrences,
                                      CommonState* common = nullptr) {
  ir::Graph& graph = exported.graph;
  const auto verifyPass = [](const ir::Graph& left, std::string_view pass) {
    if (ir::verifiesEachPass()) ir::checkVerified(left, pass);
  };
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, decompose::removeEmptyTensors));
  verifyPass(graph, "remove-empty-tensors");
  CARINA_RETURN_IF_ERROR(decompose::closeRegions(graph));
  verifyPass(graph, "close-regions");
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, checkMemory));
  const std::shared_ptr<WorkBudget> budget(new WorkBudget(budgetOf(options)));
  CARINA_RETURN_IF_ERROR(checkWork(graph, 1, *budget));
  FloatNetwork network;
  Front& front = network.front;
  front.state = std::move(exported.state);
  if (const std::vector<DType> types = lower::toSinglePrecision(graph); !types.empty())
    front.warnings.push_back(computedInFloat32(options, types));
  verifyPass(graph, "to-single-precision");
  front.nodes = sourceNodes(graph);
  CARINA_TRY(QuantizerOptions quantizer, quantizerOptions(options));
  CARINA_RETURN_IF_ERROR(settleTypes(options, graph, front, quantizer));
  quantizer.options.sourceOps = quantize::sourceOpsOf(graph);
  quantizer.options.moduleClasses = std::move(exported.classes);
  quantizer.options.states = front.state.size();
  quantizer.options.loops = budget;
  const bool quantizes =
      quantizationOf(options) != Quantization::None && !quantize::carriesQuantization(graph);
  if (!quantizes && !options.quantizeConfig.empty()) {
    front.warnings.push_back(
        {"has no effect: nothing is quantized", "", options.quantizeConfig.string(), ""});
  }
  const bool prequantized = quantize::carriesQuantization(graph);
  if (!quantizes && !prequantized) CARINA_RETURN_IF_ERROR(refuseCodesOfFloats(options, graph, front));
  const bool coded = quantizes || (prequantized && options.target != "cpu");
  if (recurrences == Recurrences::Unrolled)
    CARINA_RETURN_IF_ERROR(warnOfUnrolled(options, graph, coded, front.warnings));
  CARINA_RETURN_IF_ERROR(decompose::loopRecurrences(graph, loopsFor(options, coded, recurrences)));
  verifyPass(graph, "loop-recurrences");
  if (options.target == "cpu" && quantizationOf(options) == Quantization::None) {
    warnOfIdleQuantizer(options, prequantized, false, front.warnings);
    CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, quantize::settleParameters));
    CARINA_TRY(front.ends, adaptEnds(graph, options.ends, front.inputs, front.state.size(), prequantized));
    front.ends.sized = std::move(exported.sized);
    ir::checkVerified(graph, "settle-parameters");
    // CPU kernels accept the operators as exported; operators without kernels are decomposed during assembly.
    front.source = graph.clone();
    front.quantized = std::move(graph);
    return network;
  }
  {
    Stopwatch watch(times, "decompose");
    if (prequantized) CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, quantize::normalizePrequantized));
    verifyPass(graph, "normalize-prequantized");
    CARINA_TRY(front.ends, adaptEnds(graph, options.ends, front.inputs, front.state.size(), prequantized));
    front.ends.sized = std::move(exported.sized);
    verifyPass(graph, "adapt-ends");
    const partition::Requests requests{options.cpuOps, options.cpuNames, options.cpuModules, {}};
    const bool keeps = keepsSamplers(options, graph);
    const auto isKept = [&](const ir::Node& node) {
      return (keeps && samplesAtComputedPositions(node)) || !requests.matching(node).empty();
    };
    if (auto status =
            requests.empty() && !keeps ? decompose::forNpu(graph) : decompose::forNpu(graph, isKept);
        !status.ok())
      return std::move(status).error().inFile(options.model.string());
  }
  ir::checkVerified(graph, "decompose");
  CARINA_RETURN_IF_ERROR(aten::forEachGraph(graph, checkMemory));
  dump(options, "decompose", graph);

  bool read = quantizes;  // whether the calibration samples were read
  if (prequantized && options.target != "cpu") {
    Stopwatch watch(times, "quantize");
    front.source = graph.clone();
    CARINA_TRY(graph, quantizedInside(options, std::move(graph), quantizer.options, front.state, front.ends,
                                      front.warnings, read));
    ir::checkVerified(graph, "quantizedInside");
    dump(options, "quantize", graph);
  }
  warnOfIdleQuantizer(options, prequantized, read, front.warnings);
  if (!quantizes) {
    if (prequantized) addLast(front.warnings, partition::warningsOf(coarseFunctionsOf(options, graph)));
    front.quantized = std::move(graph);
    return network;
  }
  CARINA_TRY(network.samples, readSamples(options, graph, front.state, front.ends));
  CARINA_RETURN_IF_ERROR(checkWork(graph, network.samples.size(), *budget));
  // The examples match the network's own inputs only.
  if (front.ends.inputs.empty())
    warnOfSamples(options, graph, network.samples, exported.examples, front.warnings);
  CARINA_TRY(network.samples,
             callsOf(options, graph, front.state, std::move(network.samples), common, budget.get()));
  network.quantizes = true;
  network.graph = std::move(graph);
  network.quantizer = std::move(quantizer.options);
  return network;
}

constexpr const char* kQuantizeRemedy = "the float network cannot compute this: check the calibration data";

/// `front`: what is known so far.
Result<Front> frontOfQuantized(const Options& options, Front front, quantize::Quantized quantized,
                               std::span<const quantize::Sample> samples, WorkBudget* loops) {
  if (options.measureSqnr) {
    CARINA_RETURN_IF_ERROR(quantize::measureSqnr(quantized, samples, quantized.report, loops));
  }
  const std::vector<partition::CoarseFunction> coarse = coarseFunctionsOf(options, quantized.graph);
  if (options.estimateAccuracy) {
    giveBackIdleMemory();
    std::optional<ir::Graph> program;
    if (!coarse.empty()) program = partition::withProgramsCodes(quantized.graph, coarse);
    CARINA_TRY(front.accuracy, quantize::estimateAccuracy(quantized, samples, kComparedSamples, loops,
                                                          program ? &*program : nullptr));
    if (front.accuracy) {
      const bool narrow = quantizationOf(options) == Quantization::Int8;
      if (auto poor = quantize::poorAccuracy(*front.accuracy, narrow))
        front.warnings.push_back(std::move(*poor));
    }
  }
  if (options.target != "cpu") {
    CARINA_TRY(front.wideIntegers, quantize::wideIntegers(quantized.graph, samples, loops));
  }
  addLast(front.warnings, quantized.warnings);
  addLast(front.warnings, partition::warningsOf(coarse));
  front.source = std::move(quantized.reference);
  front.quantized = std::move(quantized.graph);
  front.quantization = std::move(quantized.report);
  front.keptFloat = std::move(quantized.keptFloat);
  ir::checkVerified(front.quantized, "quantize");
  dump(options, "quantize", front.quantized);
  return front;
}

/// `front`: what is known so far. The samples are those of the network.
Result<Front> quantizeGraph(const Options& options, Front front, ir::Graph graph,
                            const quantize::Options& quantizer, std::span<const quantize::Sample> samples,
                            std::vector<StageTime>& times) {
  Stopwatch watch(times, "quantize");
  auto quantized = quantize::quantize(std::move(graph), quantizer, samples, options.progress);
  if (!quantized)
    return std::move(quantized).error().inFile(options.model.string()).withRemedy(kQuantizeRemedy);
  return frontOfQuantized(options, std::move(front), std::move(*quantized), samples, quantizer.loops.get());
}

Result<std::vector<Front>> makeFronts(std::span<const Options> options, std::vector<FloatNetwork> networks,
                                      std::vector<StageTime>& times) {
  Stopwatch watch(times, "quantize");
  std::vector<quantize::Job> jobs;
  std::vector<size_t> methods;  // of the jobs
  for (size_t i = 0; i < networks.size(); ++i) {
    FloatNetwork& network = networks[i];
    if (!network.quantizes) continue;
    std::vector<std::string> states;
    for (const ir::StateVariable& variable : network.front.state) states.push_back(variable.name);
    // Methods of one network at several sizes form a family.
    const std::string family =
        options[i].sizes.empty() ? "" : fmt::format("{}:{}", options[i].model.string(), options[i].program);
    jobs.push_back({std::move(network.graph), network.quantizer, network.samples, std::move(states),
                    options[i].model.string(), family});
    methods.push_back(i);
  }
  auto quantized = quantize::quantizeTogether(std::move(jobs), options.front().progress);
  if (!quantized) return std::move(quantized).error().withRemedy(kQuantizeRemedy);
  std::vector<Front> fronts;
  fronts.reserve(networks.size());
  for (FloatNetwork& network : networks) fronts.push_back(std::move(network.front));
  for (size_t k = 0; k < methods.size(); ++k) {
    const size_t i = methods[k];
    auto front = frontOfQuantized(options[i], std::move(fronts[i]), std::move((*quantized)[k]),
                                  networks[i].samples, networks[i].quantizer.loops.get());
    if (!front) return std::move(front).error().inFile(options[i].model.string());
    fronts[i] = std::move(*front);
  }
  return fronts;
}

Result<Front> makeFront(const Options& options, Exported exported, std::vector<StageTime>& times) {
  CARINA_TRY(FloatNetwork network,
             makeFloatNetwork(options, std::move(exported), times, Recurrences::MayLoop));
  if (!network.quantizes) return std::move(network.front);
  return quantizeGraph(options, std::move(network.front), std::move(network.graph), network.quantizer,
                       network.samples, times);
}

void addFirst(std::vector<Diagnostic>& warnings, const std::vector<Diagnostic>& first) {
  warnings.insert(warnings.begin(), first.begin(), first.end());
}

Result<Front> frontOfExported(const Options& options, Exported exported, std::vector<StageTime>& times) {
  auto front = ir::rejectInvalidNodes("", [&] { return makeFront(options, std::move(exported), times); });
  if (!front) return std::move(front).error().inFile(options.model.string());
  return front;
}

}  // namespace

Result<Front> frontOf(const Options& options, ir::Graph graph, std::vector<StageTime>& times) {
  return frontOfExported(options, {std::move(graph)}, times);
}

Quantization quantizationOf(const Options& options) {
  if (options.quantization != Quantization::Default) return options.quantization;
  return options.target == "cpu" ? Quantization::None : Quantization::Int8;
}

std::vector<Port> inputPorts(const ir::Graph& graph) {
  std::vector<Port> ports;
  for (const ir::Value* input : graph.inputs()) ports.push_back({input->name, input->type});
  return ports;
}

Result<Front> runFront(const Options& options, std::vector<StageTime>& times) {
  CARINA_TRY(const FileKind kind, fileKindOf(options.model));
  if (kind == FileKind::Archive) {
    CARINA_TRY(Exported exported, readPt2(options, times));
    const std::vector<Diagnostic> warnings = std::move(exported.warnings);
    auto front = frontOfExported(options, std::move(exported), times);
    if (front) addFirst(front->warnings, warnings);
    return front;
  }
  if (!options.sizes.empty()) {
    return fail(Code::OptionDoesNotApply, "the sizes of a {} are fixed", fileKindName(kind))
        .inFile(options.model.string())
        .at("--specialize")
        .withRemedy("leave it out");
  }
  if (kind == FileKind::Tosa) return readTosa(options, times);
  if (kind == FileKind::Tflite) {
    CARINA_RETURN_IF_ERROR(refuseEnds(options, "quantized .tflite", Layout::ChannelsLast));
    return readTflite(options, times);
  }
  return (kind == FileKind::Unknown ? fail(Code::WrongKind, "cannot tell what kind of network this is")
                                    : fail(Code::WrongKind, "is a {}, not a network", fileKindName(kind)))
      .inFile(options.model.string())
      .withRemedy("networks are read from .pt2 (torch.export.save), .tflite and .tosa files");
}

Result<FloatNetwork> readFloatNetwork(const Options& options, std::vector<StageTime>& times,
                                      CommonState* common) {
  CARINA_TRY(Exported exported, readPt2(options, times, common ? common->names : std::vector<std::string>()));
  const std::vector<Diagnostic> warnings = std::move(exported.warnings);
  auto network = ir::rejectInvalidNodes("", [&] {
    return makeFloatNetwork(options, std::move(exported), times,
                            common ? Recurrences::MayLoop : Recurrences::Unrolled, common);
  });
  if (!network) return std::move(network).error().inFile(options.model.string());
  addFirst(network->front.warnings, warnings);
  return network;
}

Result<std::vector<Front>> quantizeNetworks(std::span<const Options> options,
                                            std::vector<FloatNetwork> networks,
                                            std::vector<StageTime>& times) {
  return ir::rejectInvalidNodes("", [&] { return makeFronts(options, std::move(networks), times); });
}

quantize::Options quantizerOf(const Options& options, const FloatNetwork& network,
                              const quantize::RulesFile& rules) {
  quantize::Options quantizer = quantizerOptions(options, rules).options;
  quantizer.sourceOps = network.quantizer.sourceOps;
  quantizer.moduleClasses = network.quantizer.moduleClasses;
  quantizer.states = network.quantizer.states;
  quantizer.inputPrecisions = network.quantizer.inputPrecisions;
  quantizer.outputPrecisions = network.quantizer.outputPrecisions;
  quantizer.loops = network.quantizer.loops;
  return quantizer;
}

Result<Front> quantizeNetwork(const Options& options, const FloatNetwork& network,
                              const quantize::RulesFile& rules, std::vector<StageTime>& times) {
  Front front;
  front.nodes = network.front.nodes;
  front.state = network.front.state;
  front.ends = network.front.ends;
  front.inputs = network.front.inputs;
  front.outputs = network.front.outputs;
  front.warnings = network.front.warnings;
  auto quantized = ir::rejectInvalidNodes("", [&] {
    return quantizeGraph(options, std::move(front), network.graph.clone(),
                         quantizerOf(options, network, rules), network.samples, times);
  });
  if (!quantized) return std::move(quantized).error().inFile(options.model.string());
  return quantized;
}

}  // namespace carina::pipeline
