// SPDX-License-Identifier: Apache-2.0
// What files hold.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/npy.hpp"

namespace carina::test {

/// All bytes of a file; none of one that is not there.
inline std::string contentsOf(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

/// The arrays PREFIX0, PREFIX1 and so on, as far as they go.
inline std::vector<Tensor> arraysNamed(const NamedTensors& arrays, const std::string& prefix) {
  std::vector<Tensor> found;
  while (const Tensor* tensor = findTensor(arrays, prefix + std::to_string(found.size())))
    found.push_back(*tensor);
  return found;
}

}  // namespace carina::test
