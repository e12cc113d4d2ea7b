// SPDX-License-Identifier: Apache-2.0
// Writes a compiled network for TensorFlow Lite for Microcontrollers: one `ethos-u` custom operator with an
// offline memory plan, like Vela.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"

namespace carina::tflite {

/// An input or output with its place in the arena and its quantization.
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
  int64_t arenaBytes = 0;        // region 1, including inputs and outputs
  int64_t fastScratchBytes = 0;  // region 2; 0: it is the arena
  std::vector<PlacedTensor> inputs, outputs;
};

/// The bytes of a .tflite. Fails on element types that such a file does not support, and beyond 2 GiB.
Result<std::string> writeNpuModel(const NpuModel& model);

}  // namespace carina::tflite
