// SPDX-License-Identifier: Apache-2.0
// Operators of TensorFlow Lite that a compiled model leaves to the CPU, computed here as in its reference
// kernels for microcontrollers.
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

/// Prepares an operator of a subgraph. Integer operators give the results of the reference kernels; float
/// ones may differ in the last bits. Error: an unsupported operator, with the reason. `model` must outlive
/// the result.
Result<TfliteOperator> prepareOperator(const tflite::Model& model, size_t subgraph, size_t index);

}  // namespace carina::device
