// SPDX-License-Identifier: Apache-2.0
// CARINA_FUZZ_TARGET(name) { ... } defines a fuzz target, a function of `const uint8_t* data` and `size_t
// size` that returns 0. With CARINA_FUZZ it is the function that libFuzzer calls, one target per program.
// Otherwise it is an entry of the program that replays the corpora (replay.cpp), which holds many targets:
// each file is therefore a namespace of its own.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef CARINA_FUZZ
#define CARINA_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
#else
namespace carina::fuzz {

/// A target of this program, in a list of all of them.
struct Target {
  Target(const char* name, int (*run)(const uint8_t*, size_t)) : name(name), run(run), next(first()) {
    first() = this;
  }
  static const Target*& first() {
    static const Target* list = nullptr;
    return list;
  }

  const char* name;
  int (*run)(const uint8_t* data, size_t size);
  const Target* next;
};

}  // namespace carina::fuzz

#define CARINA_FUZZ_TARGET(name)                                        \
  static int name##Target(const uint8_t* data, size_t size);            \
  static const ::carina::fuzz::Target name##Entry(#name, name##Target); \
  static int name##Target(const uint8_t* data, size_t size)
#endif
