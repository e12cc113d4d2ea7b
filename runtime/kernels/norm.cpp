// SPDX-License-Identifier: Apache-2.0
// Normalization in float32: layer and group norm (row-major tensors), batch norm with given statistics.
#include <math.h>

#include <initializer_list>

#include "carina/kernels.hpp"
#include "positions.hpp"
#include "reduction.hpp"

namespace carina::rt::kernels {
namespace {

bool allReal(const Tensor* const* tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (tensors[i] != nullptr && !isReal(tensors[i]->type)) return false;
  }
  return true;
}

/// Mean of `count` floats and 1 / sqrt(variance + eps).
void statistics(const float* values, size_t count, float eps, float* mean, float* inverse) {
  RealSum sum, squares;
  for (size_t i = 0; i < count; ++i) sum.add(values[i]);
  *mean = sum.sum / static_cast<float>(count);
  for (size_t i = 0; i < count; ++i) squares.add((values[i] - *mean) * (values[i] - *mean));
  *inverse = 1.0f / sqrtf(squares.sum / static_cast<float>(count) + eps);
}

constexpr Status notRowMajor() {
  return failure(Code::Unsupported, "the kernel takes row-major tensors");
}

}  // namespace

/// (input, normalized_shape, weight, bias, eps, out, mean, rstd)
Status layerNorm(KernelContext& context) {
  Call call(context, 8);
  const Tensor* input = call.tensor(0);
  const IntegerList shape = call.integers(1);
  const Tensor* weight = call.optionalTensor(2);
  const Tensor* bias = call.optionalTensor(3);
  const float eps = static_cast<float>(call.real(4));
  Tensor* output = call.output(5);
  Tensor* means = call.output(6);
  Tensor* inverses = call.output(7);
  if (!call.ok()) return call.status();
  const Tensor* all[] = {input, weight, bias, output, means, inverses};
  if (!allReal(all, 6)) return typesDiffer();
  if (!sameShape(*input, *output) || shape.count > input->rank) return shapesDiffer();
  if (!isRowMajor(*input) || !isRowMajor(*output)) return notRowMajor();
  size_t length = 1;
  for (uint32_t i = 0; i < shape.count; ++i) {
    if (shape.items[i] != input->sizes[input->rank - shape.count + i]) return shapesDiffer();
    length *= static_cast<size_t>(shape.items[i]);
  }
  const size_t count = input->elements();
  if (count == 0) return Status{};
  for (const Tensor* affine : {weight, bias}) {
    if (affine != nullptr && (affine->elements() != length || !isRowMajor(*affine))) return shapesDiffer();
  }
  if (means->elements() != count / length || inverses->elements() != count / length) return shapesDiffer();
  for (size_t line = 0; line < count / length; ++line) {
    const float* in = input->as<const float>() + line * length;
    float* out = output->as<float>() + line * length;
    float mean = 0, inverse = 0;
    statistics(in, length, eps, &mean, &inverse);
    for (size_t i = 0; i < length; ++i) {
      const float value =
          (in[i] - mean) * inverse * (weight == nullptr ? 1.0f : weight->as<const float>()[i]);
      out[i] = value + (bias == nullptr ? 0.0f : bias->as<const float>()[i]);
    }
    means->as<float>()[line] = mean;
    inverses->as<float>()[line] = inverse;
  }
  return Status{};
}

/// (input, weight, bias, N, C, HxW, group, eps, out, mean, rstd)
Status groupNorm(KernelContext& context) {
  Call call(context, 11);
  const Tensor* input = call.tensor(0);
  const Tensor* weight = call.optionalTensor(1);
  const Tensor* bias = call.optionalTensor(2);
  const int64_t channels = call.integer(4), groups = call.integer(6);
  const float eps = static_cast<float>(call.real(7));
  Tensor* output = call.output(8);
  Tensor* means = call.output(9);
  Tensor* inverses = call.output(10);
  if (!call.ok()) return call.status();
  const Tensor* all[] = {input, weight, bias, output, means, inverses};
  if (!allReal(all, 6)) return typesDiffer();
  if (!sameShape(*input, *output) || input->rank < 2 || input->sizes[1] != channels) return shapesDiffer();
  if (groups < 1 || channels < 1 || channels % groups != 0) return outOfRange(6);
  if (!isRowMajor(*input) || !isRowMajor(*output)) return notRowMajor();
  for (const Tensor* affine : {weight, bias}) {
    if (affine != nullptr && affine->elements() != static_cast<size_t>(channels)) return shapesDiffer();
  }
  const size_t count = input->elements();
  if (count == 0) return Status{};
  const size_t blocks = static_cast<size_t>(input->sizes[0]) * static_cast<size_t>(groups);
  const size_t perGroup = static_cast<size_t>(channels / groups), length = count / blocks,
               plane = length / perGroup;
  if (means->elements() != blocks || inverses->elements() != blocks) return shapesDiffer();
  for (size_t block = 0; block < blocks; ++block) {
    const float* in = input->as<const float>() + block * length;
    float* out = output->as<float>() + block * length;
    float mean = 0, inverse = 0;
    statistics(in, length, eps, &mean, &inverse);
    for (size_t i = 0; i < length; ++i) {
      const size_t c = block % static_cast<size_t>(groups) * perGroup + i / plane;
      const float value =
          (in[i] - mean) * inverse * (weight == nullptr ? 1.0f : weight->as<const float>()[c]);
      out[i] = value + (bias == nullptr ? 0.0f : bias->as<const float>()[c]);
    }
    means->as<float>()[block] = mean;
    inverses->as<float>()[block] = inverse;
  }
  return Status{};
}

/// (input, weight, bias, running_mean, running_var, momentum, eps, out, saved mean, saved rstd): the saved
/// tensors are empty.
Status batchNormNoTraining(KernelContext& context) {
  Call call(context, 10);
  const Tensor* input = call.tensor(0);
  const Tensor* affine[4] = {call.optionalTensor(1), call.optionalTensor(2), call.tensor(3), call.tensor(4)};
  const float eps = static_cast<float>(call.real(6));
  Tensor* output = call.output(7);
  if (!call.ok()) return call.status();
  if (!isReal(input->type) || !isReal(output->type) || !allReal(affine, 4)) return typesDiffer();
  if (input->rank < 2 || !sameShape(*input, *output)) return shapesDiffer();
  for (const Tensor* tensor : affine) {
    if (tensor != nullptr && (tensor->rank != 1 || tensor->sizes[0] != input->sizes[1]))
      return shapesDiffer();
  }
  if (input->elements() == 0) return Status{};
  size_t from[kMaxRank], to[kMaxRank];
  strides(*input, from);
  strides(*output, to);
  Positions positions;
  for (uint32_t d = 0; d < input->rank; ++d) {
    if (d != 1) positions.add(input->sizes[d], from[d], to[d]);
  }
  for (size_t c = 0; c < static_cast<size_t>(input->sizes[1]); ++c) {
    const auto channel = [&](uint32_t i, float otherwise) {
      return affine[i] == nullptr ? otherwise : affine[i]->as<const float>()[c];
    };
    const float mean = channel(2, 0.0f), shift = channel(1, 0.0f);
    const float scale = channel(0, 1.0f) / sqrtf(channel(3, 1.0f) + eps);
    for (positions.restart(); !positions.done(); positions.next()) {
      const float value = input->as<const float>()[positions.first() + c * from[1]];
      output->as<float>()[positions.second() + c * to[1]] = (value - mean) * scale + shift;
    }
  }
  return Status{};
}

}  // namespace carina::rt::kernels
