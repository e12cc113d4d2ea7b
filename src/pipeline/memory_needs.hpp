// SPDX-License-Identifier: Apache-2.0
// Whether the static RAM that a build needs is available.
#pragma once

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Bytes of a build that reside in static RAM while it runs, according to the memory mode. NPU parts share
/// the arena and the cache, which must hold the largest; constants and commands add up.
struct SramNeeds {
  int64_t arena = 0, cache = 0, constants = 0;
  int64_t total() const { return arena + cache + constants; }
  std::string str() const;  // "arena 4096, constants and commands 812"
};
SramNeeds sramNeeds(const Build& build);

/// Fails if the options limit static RAM to less than the build needs; otherwise, warns if no board that
/// carries the target has enough.
Status checkSram(Build& build);

}  // namespace carina::pipeline
