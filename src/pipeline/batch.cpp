// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/array_fit.hpp"

namespace carina::pipeline {
namespace {

const Tensor* inputArray(const NamedTensors& arrays, size_t i) {
  if (const Tensor* tensor = findTensor(arrays, fmt::format("in{}", i))) return tensor;
  return i == 0 && arrays.size() == 1 ? findTensor(arrays, "") : nullptr;
}

/// The tensor as the port's type, or why that would change values.
Result<Tensor> fitType(const Tensor& tensor, DType to) {
  if (tensor.dtype() == to) return tensor;
  if (isFloat(tensor.dtype()) && isFloat(to)) return convert(tensor, to);
  const bool fromWhole = isInteger(tensor.dtype()) || tensor.dtype() == DType::Bool;
  const bool toWhole = isInteger(to) || to == DType::Bool;
  if (fromWhole && toWhole) return convertIntegers(tensor, to);
  return fail(Code::InputMismatch, "holds {}, the program takes {}", dtypeName(tensor.dtype()), dtypeName(to))
      .withRemedy(isFloat(tensor.dtype())
                      ? "quantize the values, or compile the program with --io float"
                      : "convert the array to float32, or compile the program with --io int8");
}

}  // namespace

std::optional<Stacking> stackingOf(const Shape& array, const Shape& one) {
  if (array == one) return Stacking::None;
  if (array.size() == one.size() + 1 && std::equal(one.begin(), one.end(), array.begin() + 1))
    return Stacking::NewAxis;
  if (array.size() == one.size() && !one.empty() && one[0] == 1 &&
      std::equal(one.begin() + 1, one.end(), array.begin() + 1)) {
    return Stacking::BatchAxis;
  }
  return std::nullopt;
}

Tensor slice(const Tensor& tensor, int64_t index) {
  const Shape shape(tensor.shape().begin() + 1, tensor.shape().end());
  const auto bytes = static_cast<size_t>(numElements(shape) * dtypeSize(tensor.dtype()));
  auto owner = std::make_shared<const Tensor>(tensor);
  return Tensor::borrow(tensor.dtype(), shape,
                        owner->bytes().subspan(static_cast<size_t>(index) * bytes, bytes), owner);
}

Tensor stack(std::span<const Tensor> tensors) {
  CARINA_CHECK(!tensors.empty(), "nothing to stack");
  Shape shape = tensors.front().shape();
  shape.insert(shape.begin(), static_cast<int64_t>(tensors.size()));
  Tensor result = Tensor::uninitialized(tensors.front().dtype(), shape);
  std::byte* out = result.mutableBytes().data();
  for (const Tensor& tensor : tensors) {
    if (tensor.numBytes() > 0) std::memcpy(out, tensor.bytes().data(), tensor.bytes().size());
    out += tensor.bytes().size();
  }
  return result;
}

Result<Batch> makeBatch(const NamedTensors& arrays, std::span<const Port> ports) {
  std::vector<Tensor> inputs;
  int64_t samples = -1;
  Batch batch;
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string name = fmt::format("in{}", i);
    const Port& port = ports[i];
    const Tensor* array = inputArray(arrays, i);
    if (!array) {
      return fail(Code::InputMismatch, "array '{}' is missing", name)
          .withRemedy(fmt::format("it feeds program input {} ('{}', {}); {}", i, port.name,
                                  ir::typeText(port.type), describeArrays(arrays, name, port.type.shape)));
    }
    const auto stacking = stackingOf(array->shape(), port.type.shape);
    if (!stacking) {
      return fail(Code::InputMismatch, "has shape {}, program input {} ('{}') takes {}",
                  shapeText(array->shape()), i, port.name, shapeText(port.type.shape))
          .at(name)
          .withRemedy(layoutRemedy(array->shape(), port.type.shape))
          .withRemedy("give one sample of that shape, or several with an additional leading axis");
    }
    if (*stacking != Stacking::None) {
      if (batch.stacking != Stacking::None && array->dim(0) != samples) {
        return fail(Code::InputMismatch, "holds {} samples, an earlier input {}", array->dim(0), samples)
            .at(name)
            .withRemedy("give the same number of samples for every input");
      }
      batch.stacking = *stacking;
      samples = array->dim(0);
      if (samples == 0)
        return fail(Code::InputMismatch, "holds no sample").at(name).withRemedy("give at least one");
    }
    auto fitted = fitType(*array, port.type.dtype);
    if (!fitted) {
      return std::move(fitted).error().at(name).withRemedy(
          fmt::format("program input {} takes {}", i, ir::typeText(port.type)));
    }
    inputs.push_back(std::move(*fitted));
  }
  for (int64_t n = 0; n < (batch.stacking == Stacking::None ? 1 : samples); ++n) {
    auto& sample = batch.samples.emplace_back();
    for (size_t i = 0; i < ports.size(); ++i) {
      // An input without a sample axis is the same for every run.
      const bool many = inputs[i].shape() != ports[i].type.shape;
      sample.push_back(many ? slice(inputs[i], n).reshaped(ports[i].type.shape) : inputs[i]);
    }
  }
  return batch;
}

Result<NamedTensors> runBatch(
    const Batch& batch, const std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>& runOne,
    const std::function<void(size_t, size_t)>& progress) {
  std::vector<std::vector<Tensor>> results;  // [output][sample]
  for (size_t n = 0; n < batch.samples.size(); ++n) {
    CARINA_TRY(std::vector<Tensor> outputs, runOne(batch.samples[n]));
    results.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) results[i].push_back(std::move(outputs[i]));
    if (progress) progress(n + 1, batch.samples.size());
  }
  NamedTensors named;
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor tensor = batch.stacking == Stacking::None ? results[i].front() : stack(results[i]);
    if (batch.stacking == Stacking::BatchAxis && tensor.rank() > 1 && tensor.dim(1) == 1) {
      Shape joined = tensor.shape();
      joined.erase(joined.begin() + 1);
      tensor = tensor.reshaped(std::move(joined));
    }
    named.emplace_back(fmt::format("out{}", i), std::move(tensor));
  }
  return named;
}

}  // namespace carina::pipeline
