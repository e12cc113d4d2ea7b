// SPDX-License-Identifier: Apache-2.0
// Shared by the image tests: programs of shipped networks, and whether images can be built here.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "firmware/image.hpp"
#include "firmware/toolchain.hpp"
#include "pipeline/pipeline.hpp"
#include "support/fixtures.hpp"

namespace carina::firmware {

/// models/`network`, compiled for `target` to `file`.
inline Status compileNetwork(const std::string& network, const std::string& target, const std::string& mode,
                             const std::filesystem::path& file) {
  pipeline::Options options;
  options.model = test::modelFile(network + ".pt2");
  options.calibration = test::modelFile(network + ".npz");
  options.target = target;
  options.memoryMode = mode;
  CARINA_TRY(const pipeline::Build build, pipeline::build(options));
  return pipeline::writeOutput(build, file);
}

inline ImageOptions imageOptions(const std::filesystem::path& program, const std::string& platform) {
  ImageOptions options;
  options.program = program;
  options.plan.platform = platform;
  options.source.core = "cortex-m33";
  options.kit = CARINA_KIT;
  return options;
}

inline bool hasKit() {
  return !kitCores(CARINA_KIT).empty();
}

}  // namespace carina::firmware

/// At the start of a test that builds an image.
#define CARINA_NEED_CROSS_COMPILER() \
  if (!::carina::firmware::hasKit()) \
  GTEST_SKIP() << "no cross compiler: scripts/deps.sh installs it, then configure again"
