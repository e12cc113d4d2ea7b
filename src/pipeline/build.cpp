// SPDX-License-Identifier: Apache-2.0
// The whole way: front, partition, compile, assemble; and the files it ends in.
#include "base/file.hpp"
#include "ir/printer.hpp"
#include "pipeline/assemble.hpp"
#include "pipeline/integer_io.hpp"
#include "pipeline/partitioning.hpp"
#include "pipeline/stopwatch.hpp"
#include "tosa_io/tosa_writer.hpp"

namespace carina::pipeline {
namespace {

/// A tosa graph as a program graph of one delegate call.
partition::Partitioned wrapTosa(ir::Graph tosa) {
  partition::Partitioned result;
  result.graph = ir::Graph(tosa.name);
  ir::NodeSpec spec;
  spec.def = &partition::delegateCallDef();
  spec.operands.emplace_back();
  for (const ir::Value* input : tosa.inputs()) {
    spec.operands.back().push_back(result.graph.addInput(input->type, input->name));
  }
  for (const ir::Value* output : tosa.outputs()) spec.types.push_back(output->type);
  auto call = result.graph.create(std::move(spec));
  CARINA_CHECK(call.ok(), "a delegate call takes any operands");
  for (size_t i = 0; i < tosa.outputs().size(); ++i) (*call)->result(i)->name = tosa.outputs()[i]->name;
  result.graph.setOutputs((*call)->results());
  (*call)->setRegion(0, tosa.clone());
  result.delegates.push_back({*call, std::move(tosa)});
  result.wholly = true;
  return result;
}

Status compileDelegates(Build& build) {
  const Options& options = build.options;
  Stopwatch watch(build.times, "compile");
  for (const partition::Delegate& delegate : build.partitioned.delegates) {
    if (options.dump) options.dump("tosa", [&] { return ir::print(delegate.tosa); });
    compiler::Options compilerOptions;
    compilerOptions.arenaLimit = options.arenaLimit;
    compilerOptions.optimize = options.optimize;
    compilerOptions.dump = options.dump;
    auto compiled = compiler::compile(delegate.tosa, *build.machine, compilerOptions);
    if (!compiled) return std::move(compiled).error().inFile(options.model.string());
    build.compiled.push_back(std::move(*compiled));
  }
  return {};
}

}  // namespace

Result<Build> build(const Options& options) {
  // A wrong name is said before the network is read.
  if (options.target != "cpu") {
    auto machine =
        npu::makeMachine(options.target, options.systemConfig, options.memoryMode, options.configFile);
    if (!machine) return std::move(machine).error();
  }
  std::vector<StageTime> times;
  CARINA_TRY(Front front, runFront(options, times));
  return buildFrom(std::move(front), options, std::move(times));
}

Result<Build> buildFrom(Front front, const Options& options, std::vector<StageTime> times) {
  Build build;
  build.options = options;
  build.times = std::move(times);
  if (options.target != "cpu") {
    CARINA_TRY(build.machine, npu::makeMachine(options.target, options.systemConfig, options.memoryMode,
                                               options.configFile));
  }
  build.source = std::move(front.source);
  build.warnings = std::move(front.warnings);
  const std::string file = options.model.string();

  if (front.isTosa) {
    build.partitioned = wrapTosa(std::move(front.quantized));
  } else {
    if (auto status = exposeIntegers(front.quantized, front.inputs, front.outputs); !status.ok())
      return std::move(status).error().inFile(file);
    build.simulation = front.quantized.clone();
    Stopwatch watch(build.times, "lower");
    const npu::Target* target = build.machine ? build.machine->target : nullptr;
    CARINA_TRY(build.partitioned, partitionFor(options, target, front));
  }
  build.quantization = std::move(front.quantization);
  if (build.machine) CARINA_RETURN_IF_ERROR(compileDelegates(build));

  Stopwatch watch(build.times, "assemble");
  auto assembled = assembleProgram(build.partitioned, build.compiled, front.inputs != ProgramIo::Float);
  if (!assembled) return std::move(assembled).error().inFile(file);
  build.program = std::move(assembled->program);
  build.computed = std::move(assembled->computed);
  return build;
}

Status addOutput(const Build& build, const std::filesystem::path& output, OutputFiles& files) {
  const std::string extension = output.extension().string();
  if (extension == ".pte") {
    CARINA_TRY(const std::string bytes, pte::writeProgram(build.program));
    return files.add(output, bytes);
  }
  if (extension != ".tosa" && extension != ".bin") {
    return fail("cannot tell from '{}' what to write", output.filename().string())
        .inFile(output.string())
        .withRemedy("outputs are .pte (program), .tosa (TOSA graph) and .bin (raw delegate blob)");
  }
  if (build.partitioned.delegates.size() != 1) {
    return fail("the network has {} NPU parts, a {} file holds one", build.partitioned.delegates.size(),
                extension)
        .inFile(output.string())
        .withRemedy("write a .pte");
  }
  if (extension == ".tosa") {
    CARINA_TRY(const std::string bytes, tosa_io::writeTosa(build.partitioned.delegates.front().tosa));
    return files.add(output, bytes);
  }
  CARINA_TRY(const pte::DelegateBlob contents, delegateBlob(build.compiled.front()));
  const pte::ByteVector blob = pte::buildDelegateBlob(contents);
  return files.add(output, ByteSpan(blob));
}

Status writeOutput(const Build& build, const std::filesystem::path& output) {
  OutputFiles files;
  CARINA_RETURN_IF_ERROR(addOutput(build, output, files));
  return files.commit();
}

}  // namespace carina::pipeline
