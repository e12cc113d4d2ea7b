// SPDX-License-Identifier: Apache-2.0
// A network that a test has put together, as a file that `carina compile` is given.
#pragma once

#include <filesystem>
#include <fstream>

#include "pipeline/pipeline.hpp"
#include "tflite/file_builder.hpp"

namespace carina::test {

/// Writes the network without a plan to this path, and says to compile it to a .tflite for ethos-u55-128.
inline pipeline::Options optionsForWritten(TfliteFile file, const std::filesystem::path& path) {
  file.plan = false;
  std::ofstream(path, std::ios::binary) << file.bytes();
  pipeline::Options options;
  options.model = path;
  options.target = "ethos-u55-128";
  options.tflite = true;
  return options;
}

}  // namespace carina::test
