// SPDX-License-Identifier: Apache-2.0
// Fits arrays that users supply to inputs of networks: exact conversion, and hints if one does not fit.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina {

/// Converts integers or bools to another integer type or bool. Fails if a value does not fit.
Result<Tensor> convertIntegers(const Tensor& tensor, DType to);

/// The remedy if the array looks like `one` (the shape of one sample) with its channels at the other end:
/// NHWC for NCHW, or vice versa. Empty if it does not.
std::string layoutRemedy(const Shape& array, const Shape& one);

/// Describes the arrays of a file that lacks `wanted`: "the file holds x f32[8,1,8,8]; rename it to in0?" The
/// question is added if one of the arrays holds samples of `one` (with or without a sample axis).
std::string describeArrays(const NamedTensors& arrays, std::string_view wanted, const Shape& one);

}  // namespace carina
