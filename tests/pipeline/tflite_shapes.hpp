// SPDX-License-Identifier: Apache-2.0
// Networks with the shapes of well-known ones as quantized .tflite files, with made-up weights.
#pragma once

#include <string>
#include <string_view>

namespace carina::pipeline {

/// The bytes of a .tflite of int8. `name` is one of ethosn::test::knownNetworks(). Classifiers end in a
/// softmax.
std::string tfliteNetwork(std::string_view name);

}  // namespace carina::pipeline
