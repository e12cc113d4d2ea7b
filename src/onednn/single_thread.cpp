// SPDX-License-Identifier: Apache-2.0
#include "onednn/single_thread.hpp"

#include <omp.h>

namespace carina::onednn {

SingleThread::SingleThread() : before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
SingleThread::~SingleThread() {
  omp_set_num_threads(before_);
}

}  // namespace carina::onednn
