// SPDX-License-Identifier: Apache-2.0
// A network of Ethos-N operations with their data: the compiler's input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ethosn/support/operation.hpp"

namespace carina::ethosn {

/// One operation of a network. Inputs and outputs are indices of tensors.
struct NetworkOperation {
  Operation operation;
  std::vector<int32_t> inputs, outputs;
  std::vector<uint8_t> weights;  // convolutions, fully connected: in the order of the weights' format
  std::vector<int32_t> biases;
  std::string name;  // for messages: where it comes from
};

/// Operations in topological order. Tensors have N = 1.
struct Network {
  std::vector<TensorInfo> tensors;
  std::vector<NetworkOperation> operations;
  std::vector<int32_t> inputs, outputs;  // tensors; both are NHWC in memory

  /// Appends a tensor and returns its index.
  int32_t addTensor(TensorInfo info) {
    tensors.push_back(std::move(info));
    return static_cast<int32_t>(tensors.size()) - 1;
  }
};

}  // namespace carina::ethosn
