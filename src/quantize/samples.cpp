// SPDX-License-Identifier: Apache-2.0
// Calibration samples from named arrays.
#include <algorithm>
#include <charconv>

#include "aten/executor.hpp"
#include "base/array_fit.hpp"
#include "ir/state.hpp"
#include "quantize/together.hpp"

namespace carina::quantize {
namespace {

/// Slice i along the leading axis, as a copy.
Tensor sliceOf(const Tensor& stacked, int64_t i) {
  Shape shape(stacked.shape().begin() + 1, stacked.shape().end());
  Tensor slice = Tensor::uninitialized(stacked.dtype(), shape);
  const auto bytes = static_cast<size_t>(slice.numBytes());
  const ByteSpan source = stacked.bytes().subspan(static_cast<size_t>(i) * bytes, bytes);
  std::copy(source.begin(), source.end(), slice.mutableBytes().begin());
  return slice;
}

Status checkFinite(const Tensor& tensor, const std::string& name) {
  if (tensor.dtype() != DType::Float32) return {};
  bool nonFinite = false;
  rangeOf(tensor.as<float>(), &nonFinite);
  if (nonFinite) {
    return fail(Code::BadCalibration, "calibration array {} holds values that are not finite", name)
        .withRemedy("remove NaN and infinite values");
  }
  return {};
}

/// The array in the input's type. Integers are rejected for a float input: they are what a camera delivers,
/// not what the network was trained on, and ranges of 0 to 255 where it sees -2 to 2 would silently ruin it.
Result<Tensor> typedAs(const Tensor& array, const std::string& name, const ir::Value& input, size_t index) {
  if (array.dtype() == input.dtype()) return array;
  if (isFloat(array.dtype()) == isFloat(input.dtype())) {
    if (isFloat(array.dtype())) return convert(array, input.dtype());
    auto whole = convertIntegers(array, input.dtype());
    if (!whole.ok()) {
      return std::move(whole).error().at(name).withRemedy(fmt::format(
          "input {} ('{}') is {}: give values of that type", index, input.name, dtypeName(input.dtype())));
    }
    return whole;
  }
  Error error = fail(Code::BadCalibration, "{} holds {}, but input {} ('{}') is {}", name,
                     dtypeName(array.dtype()), index, input.name, dtypeName(input.dtype()));
  return std::move(error).withRemedy(
      isFloat(input.dtype()) ? "give samples as the network receives them, after all preprocessing, as "
                               "float32 (for images often (x / 255 - mean) / deviation)"
                             : "give the integers that the network takes");
}

/// Checks that every calibN belongs to an input.
Status checkNumbers(const NamedTensors& arrays, size_t inputs) {
  constexpr std::string_view kPrefix = "calib";
  for (const auto& [name, tensor] : arrays) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view digits = std::string_view(name).substr(kPrefix.size());
    size_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index >= inputs) {
      return fail(Code::BadCalibration, "array {} does not belong to any input: the program has {}", name,
                  inputs)
          .withRemedy("name the arrays calib0, calib1, ... in the order of the program's inputs");
    }
  }
  return {};
}

/// The error for a calibN that does not hold samples of the shape.
Error misfit(const Tensor& array, const std::string& name, const Shape& expected, size_t index) {
  const Shape& shape = array.shape();
  const bool batchOfOne = !expected.empty() && expected[0] == 1;
  if (shape.size() != expected.size() + 1 && (shape.size() != expected.size() || !batchOfOne)) {
    return fail(Code::BadCalibration, "{} has shape {}, but input {} takes samples of shape {}", name,
                shapeText(shape), index, shapeText(expected))
        .withRemedy(layoutRemedy(shape, expected))
        .withRemedy("stack the samples along a leading axis");
  }
  return fail(Code::BadCalibration, "{} holds samples of shape {}, but input {} takes samples of shape {}",
              name, shapeText({shape.begin() + 1, shape.end()}), index,
              shapeText({expected.end() - static_cast<std::ptrdiff_t>(shape.size() - 1), expected.end()}))
      .withRemedy(layoutRemedy(shape, expected))
      .withRemedy(
          "give samples of the input's sizes, preprocessed as for the network, or export the network "
          "for theirs");
}

/// The samples of one input: calibN split along its leading axis, or inN whole.
Result<std::vector<Tensor>> samplesOfInput(const ir::Value& input, size_t index, const NamedTensors& arrays) {
  const std::string stackedName = "calib" + std::to_string(index), singleName = "in" + std::to_string(index);
  const Tensor* stacked = findTensor(arrays, stackedName);
  const Tensor* single = stacked ? nullptr : findTensor(arrays, singleName);
  if (!stacked && !single) {
    return fail(Code::BadCalibration, "no calibration data for input {} ({}, {})", index, input.name,
                ir::typeText(input.type))
        .withRemedy(fmt::format("it is {} (samples along a leading axis) or {} (one sample); {}", stackedName,
                                singleName, describeArrays(arrays, stackedName, input.shape())));
  }
  const std::string& name = stacked ? stackedName : singleName;
  const Tensor& array = stacked ? *stacked : *single;
  Shape expected = input.shape();
  if (stacked) {
    // A batch of one may serve as the sample axis: [64, 1, 28, 28] holds 64 samples for an input [1, 1, 28,
    // 28].
    const auto fits = [&](size_t from) {
      return array.shape().size() == expected.size() - from + 1 &&
             std::equal(expected.begin() + static_cast<std::ptrdiff_t>(from), expected.end(),
                        array.shape().begin() + 1);
    };
    const bool batchOfOne = !expected.empty() && expected[0] == 1 && fits(1);
    if (!fits(0) && !batchOfOne) return misfit(array, name, expected, index);
    if (array.dim(0) == 0)
      return fail(Code::BadCalibration, "{} holds no sample", name).withRemedy("give at least one sample");
  } else if (array.shape() != expected) {
    return fail(Code::BadCalibration, "{} has shape {}, but input {} has {}", name, shapeText(array.shape()),
                index, shapeText(expected))
        .withRemedy(layoutRemedy(array.shape(), expected))
        .withRemedy(fmt::format(
            "give one sample in the input's shape, or several as calib{} along a leading axis", index));
  }
  CARINA_TRY(const Tensor typed, typedAs(array, name, input, index));
  CARINA_RETURN_IF_ERROR(checkFinite(typed, name));
  std::vector<Tensor> samples;
  if (!stacked) {
    samples.push_back(typed);
  } else {
    for (int64_t i = 0; i < typed.dim(0); ++i) samples.push_back(sliceOf(typed, i).reshaped(expected));
  }
  return samples;
}

}  // namespace

Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays) {
  return samplesFromArrays(graph, arrays, graph.inputs().size());
}

Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays,
                                              size_t inputs) {
  CARINA_RETURN_IF_ERROR(checkNumbers(arrays, inputs));
  std::vector<Sample> samples;
  for (size_t i = 0; i < inputs; ++i) {
    CARINA_TRY(std::vector<Tensor> tensors, samplesOfInput(*graph.inputs()[i], i, arrays));
    if (i == 0) samples.resize(tensors.size());
    if (tensors.size() != samples.size()) {
      return fail(Code::BadCalibration, "input {} has {} calibration samples, input 0 has {}", i,
                  tensors.size(), samples.size())
          .withRemedy("give the same number of samples for every input");
    }
    for (size_t s = 0; s < samples.size(); ++s) samples[s].push_back(std::move(tensors[s]));
  }
  return samples;
}

Result<std::vector<Sample>> withState(const ir::Graph& graph, std::vector<Tensor> initial,
                                      std::span<const Sample> samples, WorkBudget* loops) {
  ir::StateHolder state(std::move(initial));
  return withState(graph, state, samples, loops);
}

Result<std::vector<Sample>> withState(const ir::Graph& graph, ir::StateHolder& state,
                                      std::span<const Sample> samples, WorkBudget* loops) {
  CARINA_TRY(const aten::Executor executor, aten::Executor::create(graph, aten::Folding::All, loops));
  std::vector<Sample> result;
  for (const Sample& sample : samples) {
    result.push_back(state.inputs(sample));
    CARINA_TRY(std::vector<Tensor> outputs, executor.run(result.back()));
    (void)state.outputs(std::move(outputs));
  }
  return result;
}

}  // namespace carina::quantize
