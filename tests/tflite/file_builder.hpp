// SPDX-License-Identifier: Apache-2.0
// Small .tflite files for tests: tensors with an offline memory plan, and operators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tflite/model.hpp"

namespace carina::test {

struct TfliteFile {
  struct Tensor {
    std::string name;
    tflite::TensorType type = tflite::TensorType::Int8;
    std::vector<int32_t> shape;
    std::string data;     // of a constant
    int32_t offset = -1;  // in the arena; -1: not planned
  };
  struct Operator {
    std::string custom;  // code of a custom operator; empty: `builtin`
    int32_t builtin = 0;
    std::vector<int32_t> inputs, outputs;
  };
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<int32_t> inputs, outputs;
  bool plan = true;         // with metadata OfflineMemoryAllocation
  int32_t planEntries = 0;  // that the plan claims to have; 0: as many as there are tensors
  uint32_t version = 3;

  std::string bytes() const;
};

/// A file with one `ethos-u` operator: int8 input of `input` elements at `inputAt` of a scratch of
/// `scratchBytes`, output likewise.
TfliteFile npuFile(const std::string& payload, const std::string& constants, int32_t scratchBytes,
                   int32_t input, int32_t inputAt, int32_t output, int32_t outputAt);

}  // namespace carina::test
