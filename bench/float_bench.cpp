// SPDX-License-Identifier: Apache-2.0
// Float operators in the TOSA interpreter: a 3x3 convolution of 56x56x64, and 8 products of 256x512 by
// 512x256.
#include <benchmark/benchmark.h>
#include <oneapi/tbb/global_control.h>

#include <random>

#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina {
namespace {

Tensor randoms(DType dtype, const Shape& shape) {
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  std::mt19937_64 random(1);
  std::normal_distribution<float> values;
  for (float& value : tensor.mutableAs<float>()) value = values(random);
  return dtype == DType::Float32 ? tensor : convert(tensor, dtype);
}

/// On one core, as for the figures in docs/at-load.md.
void run(benchmark::State& state, const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  for (auto _ : state) {
    auto results = tosa::interpret(graph, inputs);
    if (!results.ok()) return state.SkipWithError(results.error().str().c_str());
    benchmark::DoNotOptimize(*results);
  }
}

void convolution(benchmark::State& state, DType dtype) {
  ir::Graph graph("convolution");
  ir::Builder b(graph);
  ir::Value* input = graph.addInput({dtype, {1, 56, 56, 64}}, "x");
  ir::Value* zero = b.constant(Tensor::zeros(dtype, {1}));
  const auto conv = tosa::Conv2d::create(b, input, b.constant(randoms(dtype, {64, 3, 3, 64})),
                                         b.constant(randoms(dtype, {64})), zero, zero, ir::Ints{1, 1, 1, 1},
                                         ir::Ints{1, 1}, ir::Ints{1, 1}, false, DType::Float32);
  graph.setOutputs({conv.output()});
  run(state, graph, {randoms(dtype, {1, 56, 56, 64})});
}

void products(benchmark::State& state, DType dtype) {
  ir::Graph graph("products");
  ir::Builder b(graph);
  ir::Value* left = graph.addInput({dtype, {8, 256, 512}}, "a");
  ir::Value* zero = b.constant(Tensor::zeros(dtype, {1}));
  const auto product = tosa::Matmul::create(b, left, b.constant(randoms(dtype, {8, 512, 256})), zero, zero);
  graph.setOutputs({product.output()});
  run(state, graph, {randoms(dtype, {8, 256, 512})});
}

BENCHMARK_CAPTURE(convolution, f32, DType::Float32)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(convolution, f16, DType::Float16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(convolution, bf16, DType::BFloat16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, f32, DType::Float32)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, f16, DType::Float16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(products, bf16, DType::BFloat16)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace carina
