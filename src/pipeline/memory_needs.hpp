// SPDX-License-Identifier: Apache-2.0
// Whether what a build puts into static RAM can be there.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Bytes of a build that lie in static RAM while it runs, by the memory mode. Arenas and caches of several
/// NPU parts are used one after the other; constants and commands add up.
struct SramNeeds {
  int64_t arena = 0, cache = 0, constants = 0;
  int64_t total() const { return arena + cache + constants; }
  std::string str() const;  // "arena 4096, constants and commands 812"
};
SramNeeds sramNeeds(const Build& build);

/// Fails when the options limit static RAM to less than the build needs; otherwise, warns when no board that
/// carries the target has as much.
Status checkSram(Build& build);

}  // namespace carina::pipeline
