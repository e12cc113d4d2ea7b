// SPDX-License-Identifier: Apache-2.0
// Arrays for program inputs and outputs: in0, in1, ... by name, with several samples along a leading axis.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ir/graph.hpp"

namespace carina::pipeline {

/// A program input or output, as far as arrays must match it.
struct Port {
  std::string name;
  ir::Type type;
};

/// How an array holds its samples.
enum class Stacking : uint8_t {
  None,       // one sample, of the input's shape
  NewAxis,    // one leading axis more than the input: [64, 1, 28, 28, 1] for [1, 28, 28, 1]
  BatchAxis,  // the input's batch axis of size 1 is longer: [64, 28, 28, 1] for [1, 28, 28, 1]
};

/// Inputs of one or more runs.
struct Batch {
  Stacking stacking = Stacking::None;        // outputs are stacked the same way
  std::vector<std::vector<Tensor>> samples;  // per run: one tensor per program input
};

/// Assigns `in0, in1, ...` to the ports in order ("" serves a single input). Element types are converted if
/// the conversion is lossless (f64 -> f32, any integer whose values fit). Errors: an array is missing or has
/// another shape, sample counts differ, values do not fit.
Result<Batch> makeBatch(const NamedTensors& arrays, std::span<const Port> ports);

/// Runs once per sample and names the results `out0, out1, ...`, stacked like the inputs (on a new axis if an
/// output has no batch axis of size 1).
Result<NamedTensors> runBatch(
    const Batch& batch, const std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>& runOne,
    const std::function<void(size_t done, size_t total)>& progress = nullptr);

/// Slice `index` of `tensor` along its leading axis, which is dropped. Borrows the bytes.
Tensor slice(const Tensor& tensor, int64_t index);
/// Stacks tensors of one type and shape along a new leading axis.
Tensor stack(std::span<const Tensor> tensors);
/// Whether an array of shape `array` holds samples for an input of shape `one`, and how; nullopt if it does
/// not fit.
std::optional<Stacking> stackingOf(const Shape& array, const Shape& one);

}  // namespace carina::pipeline
