// SPDX-License-Identifier: Apache-2.0
// A TensorFlow Lite file (.tflite) as a value: subgraphs, tensors, operators by name. Bytes of constants and
// options borrow the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "base/shape.hpp"
#include "base/tensor.hpp"

namespace carina::tflite {

/// Element types with TFLite's values.
enum class TensorType : int8_t {
  Float32 = 0,
  Float16 = 1,
  Int32 = 2,
  UInt8 = 3,
  Int64 = 4,
  String = 5,
  Bool = 6,
  Int16 = 7,
  Complex64 = 8,
  Int8 = 9,
  Float64 = 10,
  Complex128 = 11,
  UInt64 = 12,
  Resource = 13,
  Variant = 14,
  UInt32 = 15,
  UInt16 = 16,
  Int4 = 17,
  BFloat16 = 18,
};
/// "int8", "float32", ...; "type 40" for unknown values.
std::string tensorTypeName(TensorType type);
/// Nothing for types that Carina's tensors do not support in this layout (strings, complex numbers, packed
/// int4, ...).
std::optional<DType> toDType(TensorType type);

struct Tensor {
  std::string name;
  TensorType type = TensorType::Float32;
  Shape shape;
  uint32_t buffer = 0;
  bool isVariable = false;
  std::vector<float> scales;        // empty: not quantized; several: per channel
  std::vector<int64_t> zeroPoints;  // as many as scales in well-formed files
  int32_t quantizedDimension = 0;   // of per-channel scales
  ByteSpan data;                    // of a constant; empty for computed tensors

  std::string str() const;  // "int8[1,490]"
};
/// Bytes of a tensor; nothing if sizes are negative or overflow, or the type has no DType.
std::optional<int64_t> tensorBytes(const Tensor& tensor);

/// An option of a built-in operator: "stride_w" = 2. Enumerators are represented by their values, booleans by
/// 0 and 1; integers have 32 bits, which a double represents exactly.
struct Option {
  std::string_view name;
  double value = 0;
  std::vector<int64_t> list;  // instead of a value
  std::string_view text;      // instead of a value; borrows the file
};

struct Operator {
  std::string name;  // "CONV_2D", or the code of a custom operator
  bool custom = false;
  int32_t version = 1;
  std::vector<int32_t> inputs, outputs;  // tensor indices, -1 = omitted
  std::vector<Option> options;
  ByteSpan customOptions;
};

struct Subgraph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<int32_t> inputs, outputs;  // tensor indices
  std::vector<Operator> operators;       // in execution order
};

struct Metadata {
  std::string name;
  ByteSpan data;
};

struct Model {
  uint32_t version = 0;
  std::string description;
  std::vector<Subgraph> subgraphs;  // at least one
  std::vector<Metadata> metadata;

  const Metadata* findMetadata(std::string_view name) const;
};

/// Whether the bytes carry TFLite's file identifier.
bool isTflite(ByteSpan file);

/// Reads a .tflite (untrusted); the model borrows `file`. All indices of the result are in range. Errors name
/// the place.
Result<Model> readModel(ByteSpan file);

/// Name of a built-in operator code; "builtin 300" for unknown codes.
std::string builtinName(int32_t code);

/// Text of the whole model: tensors, operators, inputs and outputs.
std::string printModel(const Model& model);

}  // namespace carina::tflite
