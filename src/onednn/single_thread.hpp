// SPDX-License-Identifier: Apache-2.0
// oneDNN parallelises with OpenMP; Carina's parallelism is over samples, so each run keeps to its own thread.
#pragma once

namespace carina::onednn {

/// While it lives, OpenMP regions started by this thread have one thread.
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
