// SPDX-License-Identifier: Apache-2.0
// Arrays in and out of a program: in0, in1, ... by name, and many samples behind one leading axis.
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

/// What a program input or output is, as far as arrays must fit it.
struct Port {
  std::string name;
  ir::Type type;
};

/// Where the samples of an array lie.
enum class Stacking : uint8_t {
  None,       // one sample, of the input's shape
  NewAxis,    // one leading axis more than the input: [64, 1, 28, 28, 1] for [1, 28, 28, 1]
  BatchAxis,  // the input's batch axis of size 1 is longer: [64, 28, 28, 1] for [1, 28, 28, 1]
};

/// Inputs of one or of many runs.
struct Batch {
  Stacking stacking = Stacking::None;        // outputs are stacked the same way
  std::vector<std::vector<Tensor>> samples;  // per run: one tensor per program input
};

/// Takes `in0, in1, ...` for the ports in order ("" serves a single input). Element types are converted where
/// that loses nothing by type (f64 -> f32, any integer whose values fit). Errors: an array is missing, has
/// another shape, sample counts differ, values do not fit.
Result<Batch> makeBatch(const NamedTensors& arrays, std::span<const Port> ports);

/// Runs once per sample and names the results `out0, out1, ...`, stacked as the inputs were (on a new axis
/// where an output has no batch axis of size 1).
Result<NamedTensors> runBatch(
    const Batch& batch, const std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>& runOne,
    const std::function<void(size_t done, size_t total)>& progress = nullptr);

/// `tensor` without its leading axis, at `index` of it. Borrows the bytes.
Tensor slice(const Tensor& tensor, int64_t index);
/// Tensors of one type and shape behind a new leading axis.
Tensor stack(std::span<const Tensor> tensors);
/// Whether an array of shape `array` holds samples for an input of shape `one`, and how; nothing when it does
/// not fit.
std::optional<Stacking> stackingOf(const Shape& array, const Shape& one);

}  // namespace carina::pipeline
