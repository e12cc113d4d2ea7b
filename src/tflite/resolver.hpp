// SPDX-License-Identifier: Apache-2.0
// How an application of TensorFlow Lite for Microcontrollers registers operators.
#pragma once

#include <optional>
#include <string>

#include "tflite/model.hpp"

namespace carina::tflite {

/// The method of MicroMutableOpResolver that registers an operator, with its arguments: "AddConv2D()".
/// Nothing for built-in operators that have no kernel for microcontrollers; a custom operator is registered
/// by its code.
std::optional<std::string> resolverCall(const Operator& op);

}  // namespace carina::tflite
