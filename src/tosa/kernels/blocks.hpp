// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a floating-point product in parallel, each on one oneDNN thread.
#pragma once

#include <atomic>
#include <utility>

#include "base/parallel.hpp"
#include "base/result.hpp"
#include "onednn/single_thread.hpp"

namespace carina::tosa::kernels {

/// Calls block(static_cast<int64_t>(i)) for i in [0, count). Returns the first error.
template <typename F>
Status forBlocks(int64_t count, F block) {
  std::atomic<bool> failed = false;
  Status status;
  parallelFor(static_cast<size_t>(count), [&](size_t i) {
    const onednn::SingleThread singleThread;
    Status one = block(static_cast<int64_t>(i));
    if (!one.ok() && !failed.exchange(true)) status = std::move(one);
  });
  return status;
}

}  // namespace carina::tosa::kernels
