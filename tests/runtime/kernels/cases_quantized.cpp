// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cases.hpp"

namespace carina::rt::test {
namespace {

using aten::test::Attributes;

const std::vector<DType> kQuantized = {DType::Int8, DType::UInt8, DType::Int16, DType::Int32};

Attributes rangeOf(DType dtype) {
  return {{"quant_min", std::to_string(integerMin(dtype))},
          {"quant_max", std::to_string(integerMax(dtype))},
          {"dtype", std::string(dtypeName(dtype))}};
}

/// Scales are powers of two, for which multiplying by the reciprocal, as kernels do, and dividing agree at
/// ties.
Generator perTensor(bool quantizes, const char* aten) {
  return [=](const std::string& kernel, Random& random) {
    const DType dtype = random.pick(kQuantized);
    Attributes attributes = rangeOf(dtype);
    attributes.emplace_back("scale", random.pick(std::vector<std::string>{"0.25", "0.0078125", "1"}));
    attributes.emplace_back("zero_point", std::to_string(random.range(isUnsigned(dtype) ? 0 : -100, 100)));
    const Shape shape = random.shape();
    return fromAten(kernel,
                    {{quantizes ? random.tensor(DType::Float32, shape, -50, 50)
                                : random.tensor(dtype, shape, -1e6, 1e6)}},
                    attributes, nullptr, aten);
  };
}

Generator perChannel(bool quantizes) {
  return [=](const std::string& kernel, Random& random) {
    const DType dtype = random.pick(kQuantized);
    const Shape shape = random.shape(1);
    Attributes attributes = rangeOf(dtype);
    const int64_t axis = random.range(0, static_cast<int64_t>(shape.size()) - 1);
    attributes.emplace_back("axis", std::to_string(axis));
    const Shape channels = {shape[static_cast<size_t>(axis)]};
    carina::Tensor scales = random.tensor(DType::Float32, channels, 1, 1);
    for (float& scale : scales.mutableAs<float>())
      scale = random.pick(std::vector<float>{0.25f, 0.5f, 0.0078125f});
    const carina::Tensor zeros = random.tensor(DType::Int64, channels, isUnsigned(dtype) ? 0 : -100, 100);
    return fromAten(
        kernel,
        {{quantizes ? random.tensor(DType::Float32, shape, -50, 50) : random.tensor(dtype, shape, -1e6, 1e6)},
         {scales},
         {zeros}},
        attributes);
  };
}

}  // namespace

void addQuantized(Generators& g) {
  for (const char* space : {"cortex_m::", "quantized_decomposed::"}) {
    g[std::string(space) + "quantize_per_tensor.out"] =
        perTensor(true, "quantized_decomposed.quantize_per_tensor.default");
    g[std::string(space) + "dequantize_per_tensor.out"] =
        perTensor(false, "quantized_decomposed.dequantize_per_tensor.default");
  }
  g["quantized_decomposed::quantize_per_channel.out"] = perChannel(true);
  g["quantized_decomposed::dequantize_per_channel.out"] = perChannel(false);
}

}  // namespace carina::rt::test
