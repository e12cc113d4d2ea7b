// SPDX-License-Identifier: Apache-2.0
// Operands of instructions: tensors and scalars. Sizes, dimension orders and lists stay in the program file.
#pragma once

#include "carina/scalar_type.hpp"
#include "carina/span.hpp"
#include "carina/status.hpp"

namespace carina::rt {

constexpr uint32_t kMaxRank = 16;

/// `sizes` are in logical order (NCHW for images), `dimOrder` lists the dimensions from outermost to
/// innermost in memory.
struct Tensor {
  void* data;            // null until bound, for inputs and outputs without planned memory
  const int32_t* sizes;  // rank entries, none negative
  size_t bytes;          // elements * elementSize(type)
  const uint8_t* dimOrder;
  ScalarType type;
  uint8_t rank;
  bool constant;  // in the program file: read-only
  bool planned;   // in a planned pool

  size_t elements() const { return bytes / elementSize(type); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

enum class ValueKind : uint8_t {
  Null = 0,
  Int,
  Bool,
  Double,
  Tensor,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
};

/// A list as stored in the program: int64 value indices (IntList), int32 value indices (tensor lists, -1 =
/// none), doubles, or bytes (String, BoolList).
struct List {
  const uint8_t* items;
  uint32_t count;
};

struct Value {
  ValueKind kind;
  union {
    int64_t integer;
    double real;
    bool boolean;
    Tensor tensor;
    List list;
  };
};

}  // namespace carina::rt
