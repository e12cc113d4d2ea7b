// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run.hpp"

#include <chrono>

#include "base/file.hpp"
#include "pipeline/batch.hpp"
#include "pipeline/pipeline.hpp"
#include "tosa/interpreter.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

using RunOne = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;

/// Index of the largest element of each sample's first output against the labels.
Result<size_t> countCorrect(const Tensor& output, const Tensor& labels, size_t samples) {
  if (labels.numElements() != static_cast<int64_t>(samples) || isFloat(labels.dtype()) || samples == 0) {
    return fail("holds {} {} values for {} samples", labels.numElements(), dtypeName(labels.dtype()), samples).at("labels");
  }
  const int64_t classes = output.numElements() / static_cast<int64_t>(samples);
  size_t correct = 0;
  for (int64_t n = 0; n < static_cast<int64_t>(samples); ++n) {
    int64_t best = 0;
    for (int64_t i = 1; i < classes; ++i) {
      if (output.realAt(n * classes + i) > output.realAt(n * classes + best)) best = i;
    }
    correct += best == labels.integerAt(n);
  }
  return correct;
}

Result<RunResult> runAll(const RunOptions& options, const NamedTensors& arrays, std::span<const Port> ports,
                         const RunOne& runOne) {
  auto batch = makeBatch(arrays, ports);
  if (!batch) return std::move(batch).error().inFile(options.file.string());
  RunResult result;
  result.file = options.file;
  result.samples = batch->samples.size();
  const auto start = std::chrono::steady_clock::now();
  auto outputs = runBatch(*batch, runOne, options.progress);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!outputs) return std::move(outputs).error().inFile(options.file.string());
  result.outputs = std::move(*outputs);
  if (const Tensor* labels = findTensor(arrays, "labels"); labels && !result.outputs.empty()) {
    CARINA_TRY(result.correct, countCorrect(result.outputs.front().second, *labels, result.samples));
  }
  return result;
}

Result<RunResult> runProgramFile(const RunOptions& options, const NamedTensors& arrays) {
  CARINA_TRY(auto file, MappedFile::open(options.file));
  device::RunOptions runOptions;
  runOptions.target = options.target;
  auto runner = device::Runner::open(file->bytes(), runOptions);
  if (!runner) return std::move(runner).error().inFile(options.file.string());
  std::vector<Port> ports;
  for (const auto& input : runner->inputs()) ports.push_back({fmt::format("input {}", ports.size()), {input.dtype, input.shape}});
  device::RunStats stats;
  auto result = runAll(options, arrays, ports, [&](std::span<const Tensor> inputs) -> Result<std::vector<Tensor>> {
    CARINA_TRY(device::RunOutcome outcome, runner->run(inputs));
    stats = std::move(outcome.stats);
    return std::move(outcome.outputs);
  });
  if (result) result->program = std::move(stats);
  return result;
}

Result<RunResult> runTosaFile(const RunOptions& options, const NamedTensors& arrays) {
  CARINA_TRY(const ir::Graph graph, tosa_io::readTosa(options.file));
  const std::vector<Port> ports = inputPorts(graph);
  return runAll(options, arrays, ports, [&](std::span<const Tensor> inputs) { return tosa::interpret(graph, inputs); });
}

}  // namespace

Result<RunResult> runFile(const RunOptions& options, const NamedTensors& arrays) {
  const std::string extension = options.file.extension().string();
  if (extension == ".pte") return runProgramFile(options, arrays);
  if (extension == ".tosa") return runTosaFile(options, arrays);
  return fail("cannot tell from '{}' what kind of program this is", options.file.filename().string())
      .inFile(options.file.string())
      .withRemedy("programs are .pte files (compile the network first), graphs .tosa files");
}

}  // namespace carina::pipeline
