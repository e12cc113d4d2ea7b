// SPDX-License-Identifier: Apache-2.0
// Wall time of whole compilations and inferences: of the small networks under models/, and, if
// CARINA_FIXTURES (default ../shared) exists, of mobilenet_v2 with 8 calibration samples.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "device/run.hpp"
#include "pipeline/pipeline.hpp"

namespace carina {
namespace {

pipeline::Options optionsFor(const std::filesystem::path& network) {
  pipeline::Options options;
  options.model = network;
  options.calibration = std::filesystem::path(network).replace_extension(".npz");
  options.target = "ethos-u85-128";
  options.memoryMode = "Sram_Only";
  return options;
}

void compile(benchmark::State& state, const std::filesystem::path& network) {
  for (auto _ : state) {
    auto build = pipeline::build(optionsFor(network));
    if (!build) return state.SkipWithError(build.error().str().c_str());
    for (const pipeline::StageTime& time : build->times)
      state.counters[std::string(time.stage)] = time.seconds;
  }
}

void infer(benchmark::State& state, const std::filesystem::path& network) {
  auto build = pipeline::build(optionsFor(network));
  if (!build) return state.SkipWithError(build.error().str().c_str());
  const std::string program = *pte::writeProgram(build->program);
  device::RunOptions options;
  options.model.parallel = false;
  options.model.timing = state.range(0) != 0;
  auto runner = device::Runner::open(asBytes(program), options);
  if (!runner) return state.SkipWithError(runner.error().str().c_str());
  std::vector<Tensor> inputs;
  for (const auto& input : runner->inputs()) inputs.push_back(Tensor::zeros(input.dtype, input.shape));
  for (auto _ : state) {
    auto outcome = runner->run(inputs);
    if (!outcome) return state.SkipWithError(outcome.error().str().c_str());
    benchmark::DoNotOptimize(outcome->outputs);
  }
  state.counters["MAC/s"] = benchmark::Counter(static_cast<double>(build->compiled.front().macs),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

const int kRegistered = [] {
  std::vector<std::filesystem::path> networks{std::filesystem::path(CARINA_SOURCE_DIR) / "models" /
                                              "mobile.pt2"};
  const char* given = std::getenv("CARINA_FIXTURES");
  const std::filesystem::path fixtures =
      given ? given : std::filesystem::path(CARINA_SOURCE_DIR) / ".." / "shared";
  for (const char* name : {"mobilenet_v2", "resnet8", "digits_cnn"}) {
    const auto network = fixtures / "fixtures" / "models" / (std::string(name) + ".pt2");
    if (std::filesystem::exists(network)) networks.push_back(network);
  }
  for (const auto& network : networks) {
    const std::string name = network.stem().string();
    benchmark::RegisterBenchmark(("compile/" + name).c_str(),
                                 [network](benchmark::State& state) { compile(state, network); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
    benchmark::RegisterBenchmark(("infer_one_core/" + name).c_str(),
                                 [network](benchmark::State& state) { infer(state, network); })
        ->Arg(1)
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  return 0;
}();

}  // namespace
}  // namespace carina
