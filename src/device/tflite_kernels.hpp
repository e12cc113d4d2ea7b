// SPDX-License-Identifier: Apache-2.0
// Operators of TensorFlow Lite whose arithmetic neither a TOSA graph nor a float graph can express, computed
// as in its reference kernels for microcontrollers.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "tflite/model.hpp"

namespace carina::device {

/// Operands and results in the operator's order without constants, followed by the variables on both sides.
using TfliteKernel = std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)>;

/// QUANTIZE from float, and between codes of 8 and 16 bits; DEQUANTIZE; RESHAPE, SQUEEZE and EXPAND_DIMS of
/// any type; SVDF of int8 with a state of int8 or int16; and the operators of integerKernelOf(). Nothing for
/// others.
std::optional<TfliteKernel> kernelOf(const tflite::Subgraph& graph, const tflite::Operator& op);

/// DIV of int8, uint8 and int32, LOG_SOFTMAX and L2_NORMALIZATION of int8, CAST, SCATTER_ND, REDUCE_ALL and
/// REDUCE_ANY. Nothing for others.
std::optional<TfliteKernel> integerKernelOf(const tflite::Subgraph& graph, const tflite::Operator& op);

}  // namespace carina::device
