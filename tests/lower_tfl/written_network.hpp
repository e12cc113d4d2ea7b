// SPDX-License-Identifier: Apache-2.0
// A network built by a test, as an input file of `carina compile`.
#pragma once

#include <filesystem>
#include <fstream>

#include "pipeline/pipeline.hpp"
#include "tflite/file_builder.hpp"

namespace carina::test {

/// Writes the network without a plan to `path`; returns options that compile it to a .tflite for
/// ethos-u55-128.
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
