// SPDX-License-Identifier: Apache-2.0
// Arrays that people give for inputs of networks: exact conversion, and hints where one does not fit.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina {

/// Integers or bools as another integer type or bool. Fails where a value does not fit it.
Result<Tensor> convertIntegers(const Tensor& tensor, DType to);

/// What to do when the array looks like `one` (the shape of one sample) with its channels at the other end:
/// NHWC for NCHW, or the other way round. Empty when it does not.
std::string layoutRemedy(const Shape& array, const Shape& one);

/// What the arrays of a file are, where `wanted` is not among them: "the file holds x f32[8,1,8,8]; rename it
/// to in0?" The question is put when one of the arrays holds samples of `one` (with or without a sample
/// axis).
std::string heldArrays(const NamedTensors& arrays, std::string_view wanted, const Shape& one);

}  // namespace carina
