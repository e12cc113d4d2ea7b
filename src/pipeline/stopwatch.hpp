// SPDX-License-Identifier: Apache-2.0
// Wall time of the pipeline's stages.
#pragma once

#include <chrono>
#include <new>

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// Records the time from its construction to its destruction under a stage's name.
class Stopwatch {
 public:
  Stopwatch(std::vector<StageTime>& times, std::string_view stage) : times_(times), stage_(stage) {}
  ~Stopwatch() {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    try {
      times_.push_back({stage_, elapsed.count()});
    } catch (const std::bad_alloc&) {  // a missing line in a table does no harm, throwing from here would
    }
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::vector<StageTime>& times_;
  std::string_view stage_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace carina::pipeline
