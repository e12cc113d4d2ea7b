// SPDX-License-Identifier: Apache-2.0
// Contents of files.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/npy.hpp"

namespace carina::test {

/// All bytes of a file; empty if it does not exist.
inline std::string contentsOf(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

/// The arrays PREFIX0, PREFIX1 and so on, up to the first missing one.
inline std::vector<Tensor> arraysNamed(const NamedTensors& arrays, const std::string& prefix) {
  std::vector<Tensor> found;
  while (const Tensor* tensor = findTensor(arrays, prefix + std::to_string(found.size())))
    found.push_back(*tensor);
  return found;
}

}  // namespace carina::test
