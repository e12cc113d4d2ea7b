// SPDX-License-Identifier: Apache-2.0
// Writes a compiled network as TensorFlow Lite for Microcontrollers runs it: one `ethos-u` custom operator
// with an offline memory plan, as Vela does.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"

namespace carina::tflite {

/// An input or output: where it lies in the arena, and what its codes mean.
struct PlacedTensor {
  std::string name;
  ir::Type type;
  std::optional<ir::Quantization> quantization;  // per tensor
  int64_t offset = 0;                            // bytes, a multiple of 16
};

struct NpuModel {
  std::string name;
  ByteSpan payload;              // driver payload
  ByteSpan constants;            // region 0
  int64_t arenaBytes = 0;        // region 1, inputs and outputs included
  int64_t fastScratchBytes = 0;  // region 2; 0: it is the arena
  std::vector<PlacedTensor> inputs, outputs;
};

/// The bytes of a .tflite. Errors: an element type that such a file does not have, more than 2 GiB.
Result<std::string> writeNpuModel(const NpuModel& model);

}  // namespace carina::tflite
