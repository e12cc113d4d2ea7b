// SPDX-License-Identifier: Apache-2.0
// oneDNN parallelizes with OpenMP; Carina parallelizes over samples, so each run stays on its own thread.
#pragma once

namespace carina::onednn {

/// While it exists, OpenMP regions started by this thread have one thread.
class SingleThread {
 public:
  SingleThread();
  ~SingleThread();
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int before_;
};

}  // namespace carina::onednn
