// SPDX-License-Identifier: Apache-2.0
// Runs a program to its end and says how it ended and what it took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carina::test {

struct ChildLimits {
  int64_t cpuSeconds = 60;  // of processor time; beyond, the child is killed
};

struct ChildOutcome {
  int status = -1;        // exit status; -1 when a signal ended it
  int signal = 0;         // 0 when it exited
  int64_t peakBytes = 0;  // largest resident set
  double cpuSeconds = 0;  // processor time, all threads
  std::string out, err;
};

/// `arguments[0]` is the program's path. stdin is empty. The address space is limited to 8 GiB (not under
/// sanitizers, which reserve more), so that a failing test does not take the machine with it.
ChildOutcome runChild(const std::vector<std::string>& arguments, const ChildLimits& limits = {});

/// Whether the tests (and the programs that they run) are built with AddressSanitizer: memory figures then
/// mean nothing.
bool sanitized();

}  // namespace carina::test
