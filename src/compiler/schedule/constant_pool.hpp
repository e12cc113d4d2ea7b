// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/tensor.hpp"

namespace carina::compiler {

/// Read-only bytes of the program; equal contents are stored once.
class ConstantPool {
 public:
  /// Offset of `bytes`, a multiple of 16.
  int64_t add(ByteSpan bytes);
  /// Room for so many bytes more, so that the pool is not copied while it grows to them.
  void reserve(int64_t bytes) { bytes_.reserve(bytes_.size() + static_cast<size_t>(bytes)); }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::multimap<uint64_t, std::pair<int64_t, int64_t>> byHash_;  // offset, length
};

}  // namespace carina::compiler
