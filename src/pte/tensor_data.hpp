// SPDX-License-Identifier: Apache-2.0
// Tensor data files (.ptd): named tensors and blobs that programs refer to by key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pte/program.hpp"

namespace carina::pte {

struct TensorLayout {
  ScalarType type = ScalarType::Float32;
  std::vector<int32_t> sizes;
  std::vector<uint8_t> dimOrder;
  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

struct DataEntry {
  std::string key;
  std::optional<TensorLayout> layout;  // none: an opaque blob
  ByteVector bytes;                    // equal bytes are stored once
  friend bool operator==(const DataEntry&, const DataEntry&) = default;
};

struct TensorData {
  std::vector<DataEntry> entries;  // keys are unique
  friend bool operator==(const TensorData&, const TensorData&) = default;
  const DataEntry* find(std::string_view key) const;
};

/// Reads a .ptd (untrusted). Errors name the place.
Result<TensorData> readTensorData(ByteSpan file);
Result<std::vector<TensorData>> readTensorDataFiles(std::span<const std::filesystem::path> paths);
/// Segments begin at multiples of `alignment` (a power of two, at least 16). The same data always give the
/// same bytes.
Result<std::string> writeTensorData(const TensorData& data, int64_t alignment = 128);

std::string printTensorData(const TensorData& data);

}  // namespace carina::pte
