// SPDX-License-Identifier: Apache-2.0
// Small .tflite files for tests: tensors with an offline memory plan, and operators.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tflite/model.hpp"
#include "tflite/schema.hpp"

namespace carina::test {

struct TfliteFile {
  struct Tensor {
    std::string name;
    tflite::TensorType type = tflite::TensorType::Int8;
    std::vector<int32_t> shape;
    std::string data;     // of a constant
    int32_t offset = -1;  // in the arena; -1: not planned
    std::vector<float> scales = {0.5F};
    std::vector<int64_t> zeroPoints = {-3};
    int32_t quantizedDimension = 0;
  };
  /// The options of a built-in operator, made in the builder of the file.
  struct Options {
    tflite::fb::OperatorOptions type = tflite::fb::OperatorOptions::NONE;
    std::function<flatbuffers::Offset<void>(flatbuffers::FlatBufferBuilder&)> make;
  };
  struct Operator {
    std::string custom;  // code of a custom operator; empty: `builtin`
    int32_t builtin = 0;
    std::vector<int32_t> inputs, outputs;
    Options options = {};
  };
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<int32_t> inputs, outputs;
  bool plan = true;         // with metadata OfflineMemoryAllocation
  int32_t planEntries = 0;  // that the plan claims to have; 0: as many as there are tensors
  uint32_t version = 3;

  std::string bytes() const;
};

/// Options from the fields of a schema's table: optionsOf(fb::SoftmaxOptionsT{...}).
template <typename T>
TfliteFile::Options optionsOf(const T& fields) {
  using Table = typename T::TableType;
  return {
      tflite::fb::OperatorOptionsTraits<Table>::enum_value,
      [fields](flatbuffers::FlatBufferBuilder& builder) { return Table::Pack(builder, &fields).Union(); }};
}

/// A file with one `ethos-u` operator: int8 input of `input` elements at `inputAt` of a scratch of
/// `scratchBytes`, output likewise.
TfliteFile npuFile(const std::string& payload, const std::string& constants, int32_t scratchBytes,
                   int32_t input, int32_t inputAt, int32_t output, int32_t outputAt);

}  // namespace carina::test
