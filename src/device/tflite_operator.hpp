// SPDX-License-Identifier: Apache-2.0
// Operators of TensorFlow Lite that a compiled model leaves to the CPU, computed here as its reference
// kernels for microcontrollers compute them.
#pragma once

#include <string>
#include <vector>

#include "device/tflite_kernels.hpp"

namespace carina::device {

struct TfliteOperator {
  std::string name;                      // "SOFTMAX"
  std::vector<int32_t> inputs, outputs;  // tensors of the subgraph, without constants
  std::vector<int32_t> variables;        // that it reads and writes
  TfliteKernel run;
  double work = 0;  // steps of a run (base/work_budget.hpp)
};

/// An operator of a subgraph. Integer operators give the numbers of the reference kernels, float ones
/// may differ from them in the last bits. Error: an operator that is not computed here, with the reason.
/// `model` outlives it.
Result<TfliteOperator> prepareOperator(const tflite::Model& model, size_t subgraph, size_t index);

}  // namespace carina::device
