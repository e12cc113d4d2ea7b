// SPDX-License-Identifier: Apache-2.0
// Blocks of a product of floats in parallel, each on one thread of oneDNN.
#pragma once

#include <oneapi/tbb/parallel_for.h>

#include <atomic>
#include <utility>

#include "base/result.hpp"
#include "onednn/single_thread.hpp"

namespace carina::tosa::kernels {

/// Calls block(i) for i in [0, count). The first error is returned.
template <typename F>
Status forBlocks(int64_t count, F block) {
  std::atomic<bool> failed = false;
  Status status;
  tbb::parallel_for(int64_t{0}, count, [&](int64_t i) {
    const onednn::SingleThread singleThread;
    Status one = block(i);
    if (!one.ok() && !failed.exchange(true)) status = std::move(one);
  });
  return status;
}

}  // namespace carina::tosa::kernels
