// SPDX-License-Identifier: Apache-2.0
// GNU's OpenMP library comes with oneDNN, which loads it (library.cpp): nothing else needs it, and each
// library that the program links adds a tenth of a millisecond to every start.
#include "onednn/single_thread.hpp"

#include <dlfcn.h>

namespace carina::onednn {
namespace {

struct OpenMp {
  int (*maxThreads)() = nullptr;
  void (*setThreads)(int) = nullptr;

  OpenMp() {
    // Never closed: its threads may live as long as the program.
    void* const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;  // and no oneDNN that could start threads
    maxThreads = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
    setThreads = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
  }
};

const OpenMp& openMp() {
  static const OpenMp library;
  return library;
}

}  // namespace

SingleThread::SingleThread() : before_(openMp().maxThreads ? openMp().maxThreads() : 1) {
  if (openMp().setThreads) openMp().setThreads(1);
}
SingleThread::~SingleThread() {
  if (openMp().setThreads) openMp().setThreads(before_);
}

}  // namespace carina::onednn
