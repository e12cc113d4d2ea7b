// SPDX-License-Identifier: Apache-2.0
// All stages: front, partition, compile, assemble; and the resulting files.
#include <algorithm>
#include <utility>

#include "aten/ops.hpp"
#include "base/file.hpp"
#include "base/idle_memory.hpp"
#include "base/output_path.hpp"
#include "delivery/delegate.hpp"
#include "ir/invalid_node.hpp"
#include "ir/printer.hpp"
#include "ir/verifier.hpp"
#include "lower_tfl/to_aten.hpp"
#include "npu/isa/payload.hpp"
#include "pipeline/assemble.hpp"
#include "pipeline/chosen_machine.hpp"
#include "pipeline/delivered.hpp"
#include "pipeline/ethosn_build.hpp"
#include "pipeline/ethosn_partition.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/loop_choice.hpp"
#include "pipeline/memory_needs.hpp"
#include "pipeline/partitioning.hpp"
#include "pipeline/port_codes.hpp"
#include "pipeline/stopwatch.hpp"
#include "pipeline/tflite_network.hpp"
#include "tflite/vela_writer.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::pipeline {
namespace {

/// Code limits and type of a quantized value, as in quantize and dequantize nodes.
struct CodesOf {
  explicit CodesOf(const ir::Value& value)
      : scale(value.quantization->scales[0]),
        zero(value.quantization->zeroPoints[0]),
        low(integerMin(value.dtype())),
        high(integerMax(value.dtype())),
        dtype(value.dtype()) {}
  double scale;
  int64_t zero, low, high;
  DType dtype;
};

/// A tosa graph as a program graph of one delegate call. `inputTypes` and `outputTypes`: see Front,
/// `placed`: see partition::Delegate.
partition::Partitioned wrapTosa(ir::Graph tosa, const std::vector<DType>& inputTypes,
                                const std::vector<DType>& outputTypes, std::optional<ir::Graph> placed) {
  partition::Partitioned result;
  result.graph = ir::Graph(tosa.name);
  ir::Builder builder(result.graph);
  const auto typeOf = [](const std::vector<DType>& types, size_t i, const ir::Value& value) {
    return ir::Type{i < types.size() ? types[i] : value.dtype(), value.shape()};
  };
  ir::NodeSpec spec;
  spec.def = &partition::delegateCallDef();
  spec.operands.emplace_back();
  for (size_t i = 0; i < tosa.inputs().size(); ++i) {
    const ir::Value* input = tosa.inputs()[i];
    ir::Value* value = result.graph.addInput(typeOf(inputTypes, i, *input), input->name);
    if (isFloat(value->dtype())) {
      const CodesOf codes(*input);
      value = aten::QuantizePerTensor::create(builder, value, codes.scale, codes.zero, codes.low, codes.high,
                                              codes.dtype);
    } else {
      value->quantization = input->quantization;
    }
    spec.operands.back().push_back(value);
  }
  for (size_t i = 0; i < tosa.outputs().size(); ++i) {
    const ir::Type type = typeOf(outputTypes, i, *tosa.outputs()[i]);
    spec.types.push_back(isFloat(type.dtype) ? tosa.outputs()[i]->type : type);
  }
  auto call = result.graph.create(std::move(spec));
  CARINA_CHECK(call.ok(), "a delegate call takes any operands");
  std::vector<ir::Value*> outputs;
  for (size_t i = 0; i < tosa.outputs().size(); ++i) {
    ir::Value* value = (*call)->result(i);
    if (isFloat(typeOf(outputTypes, i, *value).dtype)) {
      const CodesOf codes(*tosa.outputs()[i]);
      value = aten::DequantizePerTensor::create(builder, value, codes.scale, codes.zero, codes.low,
                                                codes.high, codes.dtype);
    } else {
      value->quantization = tosa.outputs()[i]->quantization;
    }
    value->name = tosa.outputs()[i]->name;
    outputs.push_back(value);
  }
  result.graph.setOutputs(std::move(outputs));
  (*call)->setRegion(0, ir::Graph(tosa.name));
  result.delegates.push_back({*call, std::move(tosa), std::move(placed)});
  result.wholly = true;
  return result;
}

/// `verified`: the TOSA graph is as verified by its reader.
Status compileDelegates(Build& build, compiler::KnownWeights* known, bool verified) {
  const Options& options = build.options;
  Stopwatch watch(build.times, "compile");
  for (partition::Delegate& delegate : build.partitioned.delegates) {
    if (!verified || ir::verifiesEachPass()) ir::checkVerified(delegate.tosa, "lowerToTosa");
    if (options.dump) options.dump("tosa", [&] { return ir::print(delegate.tosa); });
    compiler::Options compilerOptions;
    compilerOptions.arenaLimit = options.arenaLimit;
    compilerOptions.cacheLimit = options.cacheLimit;
    compilerOptions.optimize = options.optimize;
    compilerOptions.effort = options.effort;
    compilerOptions.dump = options.dump;
    compilerOptions.known = known;
    auto npu = std::exchange(delegate.placed, std::nullopt);
    auto compiled = npu ? compiler::compile(delegate.tosa, std::move(*npu), *build.machine, compilerOptions)
                        : compiler::compile(delegate.tosa, *build.machine, compilerOptions);
    if (!compiled) {
      return std::move(compiled)
          .error()
          .inFile(options.model.string())
          .withRemedy(
              "change the network there, or choose another target: 'carina ops --target TARGET' lists what "
              "runs where");
    }
    build.compiled.push_back(std::move(*compiled));
  }
  return {};
}

/// The only delegate as a model with an `ethos-u` operator.
Result<std::string> tfliteModel(const Build& build) {
  const ir::Graph& graph = build.graph();
  const bool whole = graph.numNodes() == 1 && graph.firstNode()->is(partition::delegateCallDef());
  if (!build.state.empty()) {
    return fail(Code::NotRepresentable, "the network keeps state ('{}'), which a .tflite cannot hold",
                build.state[0].name)
        .withRemedy("write a .pte");
  }
  if (!whole) {
    return fail(Code::NeedsWholeNpu,
                "part of the network is left to the CPU, but a .tflite holds only the NPU part")
        .withRemedy("write a .pte, or give --io int8 if only inputs and outputs are converted");
  }
  const compiler::CompiledProgram& compiled = build.compiled.front();
  const ir::Graph& tosa = build.partitioned.delegates.front().tosa;
  CARINA_TRY(const std::vector<uint8_t> payload,
             npu::buildPayload(*compiled.machine.target, compiled.commands));
  tflite::NpuModel model;
  model.name = tosa.name;
  model.payload = std::as_bytes(std::span(payload));
  model.constants = compiled.constants;
  model.arenaBytes = compiled.arenaBytes;
  model.fastScratchBytes = compiled.cacheBytes;
  // TOSA tensors have neither signedness nor scale; `value` is the program's.
  const auto place = [](const compiler::IoTensor& io, const ir::Value& value, const PortCodes& codes) {
    const bool bytes = value.dtype() == DType::UInt8;
    std::optional<ir::Quantization> quantization;
    if (codes.scale) quantization = ir::Quantization{{*codes.scale}, {codes.zeroPoint}, -1};
    return tflite::PlacedTensor{
        io.name, {bytes ? DType::UInt8 : io.dtype, io.shape}, std::move(quantization), io.offset};
  };
  const ProgramCodes codes = codesOf(build);
  const ir::Node& call = *graph.firstNode();
  const auto codesAt = [](const std::vector<PortCodes>& all, const std::vector<ir::Value*>& values,
                          const ir::Value* value) {
    const auto found = static_cast<size_t>(std::find(values.begin(), values.end(), value) - values.begin());
    return found < all.size() ? all[found] : PortCodes();
  };
  for (size_t i = 0; i < compiled.inputs.size(); ++i) {
    const ir::Value* value = call.operands()[i];
    model.inputs.push_back(place(compiled.inputs[i], *value, codesAt(codes.inputs, graph.inputs(), value)));
  }
  for (size_t i = 0; i < compiled.outputs.size(); ++i) {
    const ir::Value* value = call.result(i);
    model.outputs.push_back(
        place(compiled.outputs[i], *value, codesAt(codes.outputs, graph.outputs(), value)));
  }
  return tflite::writeNpuModel(model);
}

/// uint8 values at the inputs and outputs of a part are int8 in its TOSA graph; names them uint8 in the
/// program.
void nameBytes(const ethosn::Network& network, const ir::Node& call) {
  const auto name = [&network](int32_t tensor, ir::Value* value) {
    if (network.tensors[static_cast<size_t>(tensor)].type == ethosn::DataType::U8)
      value->type.dtype = DType::UInt8;
  };
  for (size_t i = 0; i < network.inputs.size(); ++i) name(network.inputs[i], call.operands()[i]);
  for (size_t i = 0; i < network.outputs.size(); ++i) name(network.outputs[i], call.result(i));
}

/// For a TOSA graph that is one part.
void takeEthosNPart(EthosNPart part, Build& build) {
  nameBytes(part.operations, *build.partitioned.delegates[build.ethosNParts.size()].call);
  build.ethosNParts.push_back(std::move(part));
}

/// Parts of a TOSA graph are compiled here; those of other networks were compiled when found.
Status compileEthosN(Build& build) {
  Stopwatch watch(build.times, "compile");
  for (const partition::Delegate& delegate : build.partitioned.delegates) {
    if (build.options.dump) build.options.dump("tosa", [&] { return ir::print(delegate.tosa); });
    if (build.ethosNParts.size() == build.partitioned.delegates.size()) continue;
    auto part = compileEthosNPart(delegate.tosa, *build.ethosN);
    if (!part) return std::move(part).error().inFile(build.options.model.string());
    takeEthosNPart(std::move(*part), build);
  }
  return {};
}

Result<std::vector<pte::Delegate>> delegatesOf(const Build& build) {
  std::vector<pte::Delegate> delegates;
  for (const EthosNPart& part : build.ethosNParts) delegates.push_back(delegateOf(part, *build.ethosN));
  for (const compiler::CompiledProgram& part : build.compiled) {
    CARINA_TRY(pte::Delegate delegate, delivery::ethosUDelegate(part, build.integerIo));
    delegates.push_back(std::move(delegate));
  }
  return delegates;
}

/// Whether two graphs have inputs and outputs of the same types: with --io int8, a program has codes where
/// its network has floats.
bool hasTypesOf(const ir::Graph& a, const ir::Graph& b) {
  const auto same = [](const ir::Value* x, const ir::Value* y) { return x->type == y->type; };
  return std::equal(a.inputs().begin(), a.inputs().end(), b.inputs().begin(), b.inputs().end(), same) &&
         std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), b.outputs().end(), same);
}

/// Options that have no effect for target cpu.
void warnOfIdleOptions(const Options& options, std::vector<Diagnostic>& warnings) {
  const auto idle = [&](bool given, const char* option) {
    if (given) warnings.push_back({"has no effect: target cpu has no NPU", "", "", option});
  };
  idle(!options.systemConfig.empty(), "--system-config");
  idle(!options.memoryMode.empty(), "--memory-mode");
  idle(!options.configFile.empty(), "--config");
  idle(options.arenaLimit > 0, "--arena-size");
  idle(options.cacheLimit > 0, "--cache-size");
  idle(options.optimize != compiler::Optimize::Performance, "--optimize");
  idle(options.effort != 2, "--effort");
}

/// Why nothing runs on the NPU, and what would change that.
Diagnostic idleNpu(const Build& build) {
  Diagnostic idle;
  idle.code = Code::NeedsWholeNpu;
  idle.file = build.options.model.string();
  idle.message = fmt::format("no part of the network runs on {}: ", build.options.target);
  bool activations = false, weights = false;
  for (const ir::Node* node : build.graph().nodes()) {
    activations = activations || partition::isQuantize(*node);
    weights = weights || partition::isDequantize(*node);
  }
  if (weights && !activations) {
    idle.message += "only its weights are quantized, its activations are float";
    idle.remedy =
        "quantize the activations, too, or export the float network and let Carina quantize it (--calibrate)";
  } else if (!activations && build.options.quantization == Quantization::None) {
    idle.message += "it stays in float (--quantize none), and the NPU computes in integers";
    idle.remedy = "leave out --quantize none and give --calibrate DATA.npz";
  } else {
    const auto& refusals = build.partitioned.refusals;
    idle.message += refusals.empty() ? "it has no operator that computes" : refusals.front().reason;
    idle.remedy = fmt::format("see every operator with 'carina ops {} --target {}'",
                              build.options.model.filename().string(), build.options.target);
  }
  return idle;
}

/// With Options::requireNpu: anything left to the CPU is an error.
Status checkWholly(const Build& build) {
  constexpr size_t kMaxNamed = 10;
  const std::string file = build.options.model.string();
  if (!build.hasNpu()) {
    return fail(Code::NeedsWholeNpu, "target cpu has no NPU")
        .at("--require-npu")
        .withRemedy("name an NPU with --target");
  }
  if (build.partitioned.delegates.empty()) return Error(idleNpu(build));
  if (build.partitioned.wholly) return {};
  std::vector<Diagnostic> problems;
  for (const partition::Refusal& refusal : build.partitioned.refusals) {
    if (problems.size() == kMaxNamed) break;
    problems.push_back({fmt::format("{} is left to the CPU: {}", refusal.op, refusal.reason), refusal.remedy,
                        file, refusal.node, refusal.code});
  }
  if (problems.empty()) {
    problems.push_back({fmt::format("the network is split into {} NPU parts with conversions between them",
                                    build.partitioned.delegates.size()),
                        "", file, "", Code::NeedsWholeNpu});
  }
  return Error(std::move(problems));
}

/// Operators that cannot be represented in a .pte: `formless` names them.
Error leftToTflite(const Build& build, const Error& formless) {
  std::vector<Diagnostic> problems;
  for (const partition::Refusal& refusal : build.partitioned.refusals) {
    const auto& places = formless.diagnostics();
    const bool named = std::any_of(places.begin(), places.end(), [&](const Diagnostic& one) {
      return one.place.ends_with("'" + refusal.node + "'");
    });
    if (!named) continue;
    const std::string instead =
        build.ethosN ? "compile for an Ethos-U to a .tflite, in which it stays an operator of TensorFlow "
                       "Lite: a .pte for an Ethos-N cannot hold it"
                     : "write a .tflite (-o OUT.tflite), in which it stays an operator of TensorFlow Lite";
    problems.push_back({fmt::format("{} is left to the CPU: {}", refusal.op, refusal.reason),
                        instead + (refusal.remedy.empty() ? "" : "; or " + refusal.remedy),
                        build.options.model.string(), refusal.node, refusal.code});
  }
  return problems.empty() ? Error(formless).inFile(build.options.model.string()) : Error(std::move(problems));
}

}  // namespace

Result<Build> build(const Options& options) {
  CARINA_RETURN_IF_ERROR(checkTarget(options));  // reports a wrong name before the network is read
  std::vector<StageTime> times;
  CARINA_TRY(Front front, runFront(options, times));
  return buildFrom(std::move(front), options, std::move(times));
}

namespace {

Result<Build> makeBuild(Front front, const Options& options, std::vector<StageTime> times,
                        compiler::KnownWeights* known) {
  Build build;
  build.options = options;
  build.times = std::move(times);
  if (ethosn::isEthosNName(options.target)) {
    CARINA_TRY(build.ethosN, chosenEthosN(options));
  } else if (options.target != "cpu") {
    CARINA_TRY(build.machine, chosenMachine(options));
  }
  if (options.keepSources) build.source = std::move(front.source);
  front.source.reset();
  giveBackIdleMemory();  // weights that were read, and memory of the quantizer
  build.warnings = std::move(front.warnings);
  const std::string file = options.model.string();

  std::optional<ir::Graph> placed;
  std::optional<EthosNPart> part;
  if (build.hasNpu()) {
    Stopwatch watch(build.times, "lower");
    const NpuPlaces places = build.machine ? placesOf(*build.machine) : NpuPlaces();
    placed = placeTflite(options, build.machine ? places.placeWhole : ethosNPlace(*build.ethosN, &part),
                         front, places.placeControlFlow);
  }
  if (front.isTosa) {
    build.partitioned =
        wrapTosa(std::move(front.quantized), front.inputTypes, front.outputTypes, std::move(placed));
    if (part) takeEthosNPart(std::move(*part), build);
  } else if (front.isTfl && build.machine) {
    Stopwatch watch(build.times, "lower");
    const NpuPlaces places = placesOf(*build.machine);
    CARINA_TRY(build.partitioned, partitionFor(options, &places, front, false));
  } else {
    if (!front.isTfl) {
      if (auto status = exposeIntegers(front.quantized, front.inputs, front.outputs, front.state.size());
          !status.ok())
        return std::move(status).error().inFile(file);
      exposeIntegerState(front.quantized, front.state.size());
      if (options.keepSources) build.simulation = front.quantized.clone();
    }
    Stopwatch watch(build.times, "lower");
    if (build.ethosN) {
      CARINA_TRY(EthosNPartitioned made, partitionForEthosN(options, *build.ethosN, front, false));
      build.partitioned = std::move(made.partitioned);
      build.ethosNParts = std::move(made.parts);
    } else {
      const NpuPlaces places = build.machine ? placesOf(*build.machine) : NpuPlaces();
      CARINA_TRY(build.partitioned, partitionFor(options, build.machine ? &places : nullptr, front, false));
    }
  }
  build.nodes = std::move(front.nodes);
  build.ends = std::move(front.ends);
  build.quantization = std::move(front.quantization);
  build.accuracy = front.accuracy;
  if (options.requireNpu) CARINA_RETURN_IF_ERROR(checkWholly(build));
  if (!build.hasNpu()) warnOfIdleOptions(options, build.warnings);
  if (build.hasNpu() && build.partitioned.delegates.empty()) build.warnings.push_back(idleNpu(build));
  if (build.machine && options.cacheLimit > 0 && !build.machine->memory.spilling()) {
    build.warnings.push_back(
        {fmt::format("has no effect: in memory mode {} the arena is the cache", build.machine->memory.name),
         "", "", "--cache-size"});
  }
  const bool verified = front.isTosa && front.tflite && build.partitioned.wholly;
  if (build.machine) CARINA_RETURN_IF_ERROR(compileDelegates(build, known, verified));
  if (build.ethosN) CARINA_RETURN_IF_ERROR(compileEthosN(build));
  CARINA_RETURN_IF_ERROR(checkSram(build));

  // Conversions that a program does itself are not operators of the file.
  const bool operatorsAlone = front.isTfl || build.graph().numNodes() == 1;
  if (build.machine && front.tflite && operatorsAlone &&
      hasTypesOf(build.graph(), front.tflite->network.graph)) {
    build.tflite = TfliteRest{front.tflite, build.graph().clone()};
    if (front.isTfl && options.tflite) return build;
  }
  if (front.isTfl) {
    if (front.tflite->network.subgraphs.size() > 1) return wholeError(*front.tflite, options);
    if (const Status status = lower_tfl::toAten(build.partitioned.graph); !status.ok())
      return leftToTflite(build, status.error());
  }
  {
    Stopwatch watch(build.times, "assemble");
    giveBackIdleMemory();  // memory of the compiler
    build.state = std::move(front.state);
    build.integerIo = front.inputs.anyInteger();
    pte::StatePool pool(build.program);
    CARINA_TRY(std::vector<pte::Delegate> delegates, delegatesOf(build));
    auto computed =
        assembleMethod({build.partitioned, delegates, build.state}, "forward", build.program, pool);
    if (!computed) return std::move(computed).error().inFile(file);
    CARINA_RETURN_IF_ERROR(addConstantMethods(options, build.program));
    CARINA_RETURN_IF_ERROR(addCodeMethods(codesOf(build), "forward", build.program));
    pool.finish();
    build.computed = std::move(*computed);
  }
  return build;
}

}  // namespace

Result<Build> buildFrom(Front front, const Options& options, std::vector<StageTime> times,
                        compiler::KnownWeights* known) {
  return ir::rejectInvalidNodes("", [&]() -> Result<Build> {
    if (!weighsLoops(front, options)) return makeBuild(std::move(front), options, std::move(times), known);
    Options quiet = options;  // dumps show the version with loops
    quiet.dump = nullptr;
    CARINA_TRY(Front straightFront, withoutLoops(front));
    auto straight = makeBuild(std::move(straightFront), quiet, times, known);
    auto loops = makeBuild(std::move(front), options, std::move(times), known);
    if (!straight.ok() || (loops.ok() && !isCheaper(*straight, *loops))) return loops;
    straight->options = options;
    return straight;
  });
}

Status checkOutput(const std::filesystem::path& output) {
  CARINA_RETURN_IF_ERROR(checkOutputPath(output));
  const std::string extension = output.extension().string();
  if (extension == ".pte" || extension == ".tosa" || extension == ".bin" || extension == ".tflite") return {};
  return fail(Code::BadOption, "cannot tell from '{}' what to write", output.filename().string())
      .inFile(output.string())
      .withRemedy(
          "outputs are .pte (program), .tflite (model with ethos-u operators), .tosa (TOSA graph) and .bin "
          "(raw delegate blob)");
}

Result<int64_t> programBytes(const Build& build) {
  CARINA_TRY(const std::string program, programFile(build));
  return static_cast<int64_t>(program.size());
}

Status addOutput(const Build& build, const std::filesystem::path& output, const std::string& program,
                 OutputFiles& files) {
  CARINA_RETURN_IF_ERROR(checkOutput(output));
  const std::string extension = output.extension().string();
  if (extension == ".pte") return files.add(output, program);
  if (extension == ".tflite" && build.tflite) {
    if (build.program.methods.empty()) return files.add(output, program);
    auto bytes = rewrittenTflite(build);
    if (!bytes) return std::move(bytes).error().inFile(output.string());
    return files.add(output, *bytes);
  }
  if (build.partitioned.delegates.size() != 1) {
    return fail(Code::NeedsWholeNpu, "the network has {} NPU parts, a {} file holds one",
                build.partitioned.delegates.size(), extension)
        .inFile(output.string())
        .withRemedy("write a .pte");
  }
  if (extension == ".tosa") {
    CARINA_TRY(const std::string bytes, tosa_io::writeTosa(build.partitioned.delegates.front().tosa));
    return files.add(output, bytes);
  }
  if (build.ethosN) {
    return fail(Code::NotRepresentable, "a {} file is for an Ethos-U, the target is {}", extension,
                build.ethosN->variant->name)
        .inFile(output.string())
        .withRemedy(
            "write a .pte, or a .encn if the whole network runs on the NPU with 8-bit inputs and outputs");
  }
  if (build.compiled.empty())
    return fail(Code::NeedsWholeNpu, "target cpu has no NPU part to write")
        .inFile(output.string())
        .withRemedy("write a .pte");
  if (extension == ".tflite") {
    auto bytes = tfliteModel(build);
    if (!bytes) return std::move(bytes).error().inFile(output.string());
    return files.add(output, *bytes);
  }
  CARINA_TRY(const pte::DelegateBlob contents, delivery::delegateBlob(build.compiled.front()));
  const pte::ByteVector blob = pte::buildDelegateBlob(contents);
  return files.add(output, ByteSpan(blob));
}

Status addOutput(const Build& build, const std::filesystem::path& output, OutputFiles& files) {
  CARINA_RETURN_IF_ERROR(checkOutput(output));
  if (output.extension() != ".pte" && !(build.tflite && build.program.methods.empty()))
    return addOutput(build, output, std::string(), files);
  auto program = programFile(build);
  if (!program) return std::move(program).error().inFile(output.string());
  return addOutput(build, output, *program, files);
}

Status writeOutput(const Build& build, const std::filesystem::path& output) {
  OutputFiles files;
  CARINA_RETURN_IF_ERROR(addOutput(build, output, files));
  return files.commit();
}

}  // namespace carina::pipeline
