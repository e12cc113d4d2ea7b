// SPDX-License-Identifier: Apache-2.0
#include "platform/byte_source.hpp"

#include <cstdio>

#include "base/file.hpp"

namespace carina::platform {

Result<std::function<int()>> bytesFrom(const std::filesystem::path& path) {
  if (path.empty()) return std::function<int()>();
  if (path == "-") return std::function<int()>([] { return std::getchar(); });
  CARINA_TRY(const auto file, MappedFile::open(path));
  return std::function<int()>([file, at = size_t{0}]() mutable {
    return at < file->bytes().size() ? std::to_integer<int>(file->bytes()[at++]) : -1;
  });
}

}  // namespace carina::platform
