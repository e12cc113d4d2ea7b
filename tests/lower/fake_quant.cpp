// SPDX-License-Identifier: Apache-2.0
// See fake_quant.hpp.
#include "fake_quant.hpp"

#include <random>

#include "aten/executor.hpp"
#include "decompose/decompose.hpp"
#include "tosa/interpreter.hpp"

namespace carina::lower::test {

Tensor randomFloats(const Shape& shape, uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  Tensor tensor = Tensor::uninitialized(DType::Float32, shape);
  for (float& value : tensor.mutableAs<float>()) value = normal(random);
  return tensor;
}

Tensor randomCodes(const ir::Type& type, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor = Tensor::uninitialized(type.dtype, type.shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    switch (type.dtype) {
      case DType::Bool:
        tensor.setIntegerAt(i, random() & 1);
        break;
      case DType::Int8:
        tensor.setIntegerAt(i, static_cast<int8_t>(random()));
        break;
      case DType::UInt8:
        tensor.setIntegerAt(i, static_cast<uint8_t>(random()));
        break;
      case DType::Int16:
        tensor.setIntegerAt(i, static_cast<int16_t>(random()));
        break;
      default:
        tensor.setIntegerAt(i, random() % 10);
        break;
    }
  }
  return tensor;
}

Result<Comparison> compareDelegates(const partition::Partitioned& partitioned, int samples) {
  Comparison comparison;
  for (const partition::Delegate& delegate : partitioned.delegates) {
    const ir::Graph& region = delegate.call->region(0);
    for (int sample = 0; sample < samples; ++sample) {
      std::vector<Tensor> inputs;
      for (const ir::Value* input : region.inputs()) {
        inputs.push_back(
            randomCodes(input->type, static_cast<uint32_t>(sample * 100 + static_cast<int>(inputs.size()))));
      }
      CARINA_TRY(const std::vector<Tensor> expected, aten::execute(region, inputs));
      CARINA_TRY(const std::vector<Tensor> actual, tosa::interpret(delegate.tosa, inputs));
      for (size_t o = 0; o < expected.size(); ++o) {
        if (expected[o].shape() != actual[o].shape() || expected[o].dtype() != actual[o].dtype()) {
          return fail(Code::ResultsDiffer, "output {} has another type", o);
        }
        for (int64_t i = 0; i < expected[o].numElements(); ++i) {
          const int64_t difference = std::abs(expected[o].integerAt(i) - actual[o].integerAt(i));
          comparison.different += difference != 0;
          comparison.largest = std::max(comparison.largest, difference);
        }
        comparison.elements += expected[o].numElements();
      }
    }
  }
  return comparison;
}

Result<partition::Partitioned> quantizeAndPartition(ir::Graph graph, const quantize::Options& options,
                                                    const partition::Options& partitioning) {
  CARINA_RETURN_IF_ERROR(decompose::forNpu(graph));
  std::vector<quantize::Sample> samples;
  for (uint32_t s = 0; s < 3; ++s) {
    quantize::Sample sample;
    for (const ir::Value* input : graph.inputs()) {
      const auto seed = s * 10 + static_cast<uint32_t>(sample.size()) + 1000;
      sample.push_back(isFloat(input->dtype()) ? randomFloats(input->shape(), seed)
                                               : randomCodes(input->type, seed));
    }
    samples.push_back(std::move(sample));
  }
  CARINA_TRY(quantize::Quantized quantized, quantize::quantize(std::move(graph), options, samples));
  return partition::partition(std::move(quantized.graph), partitioning);
}

int countOps(const partition::Partitioned& partitioned, const ir::OpDef& def) {
  int count = 0;
  for (const partition::Delegate& delegate : partitioned.delegates) {
    for (const ir::Node* node : delegate.tosa.nodes()) count += node->is(def);
  }
  return count;
}

}  // namespace carina::lower::test
