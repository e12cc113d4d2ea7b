// SPDX-License-Identifier: Apache-2.0
#include "compiler/schedule/constant_pool.hpp"

#include <cstring>
#include <functional>
#include <string_view>

#include "base/shape.hpp"

namespace carina::compiler {

int64_t ConstantPool::add(ByteSpan bytes) {
  const uint64_t hash =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto [first, last] = byHash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const auto [offset, length] = it->second;
    if (length == static_cast<int64_t>(bytes.size()) &&
        std::memcmp(bytes_.data() + offset, bytes.data(), bytes.size()) == 0) {
      return offset;
    }
  }
  const auto offset = static_cast<int64_t>(bytes_.size());
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  bytes_.resize(static_cast<size_t>(roundUp(static_cast<int64_t>(bytes_.size()), 16)));
  byHash_.emplace(hash, std::pair(offset, static_cast<int64_t>(bytes.size())));
  return offset;
}

}  // namespace carina::compiler
