// SPDX-License-Identifier: Apache-2.0
// torch.export's own numbers and pickle's names for element types, and their counterparts in Carina.
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.hpp"
#include "base/result.hpp"

namespace carina::pt2 {

/// An element type of torch: every one has a name and a size, most have a counterpart in Carina.
struct ScalarType {
  std::string_view name;  // "float32"
  int64_t size = 0;       // bytes per element
  std::optional<DType> dtype;
};

/// By the serializer's number (schema.py's ScalarType, not c10's); null when there is none.
const ScalarType* scalarTypeByNumber(int64_t number);
/// By the storage class of a pickle: "FloatStorage"; null when there is none.
const ScalarType* scalarTypeByStorage(std::string_view storageClass);
/// By torch's name: "float32", "uint16"; null when there is none.
const ScalarType* scalarTypeByName(std::string_view name);

/// The counterpart, or an error with the reason and a remedy.
Result<DType> supportedType(const ScalarType& type);

}  // namespace carina::pt2
