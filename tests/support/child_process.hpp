// SPDX-License-Identifier: Apache-2.0
// Runs a program to completion and reports how it ended and what it used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carina::test {

struct ChildLimits {
  int64_t cpuSeconds = 60;  // limit of CPU time; the child is killed beyond it
};

struct ChildOutcome {
  int status = -1;        // exit status; -1 if a signal terminated it
  int signal = 0;         // 0 if it exited
  int64_t peakBytes = 0;  // largest resident set
  double cpuSeconds = 0;  // CPU time, all threads
  std::string out, err;
};

/// `arguments[0]` is the program's path. stdin is empty. The address space is limited to 8 GiB (not under
/// sanitizers, which reserve more), so that a failing test cannot exhaust the machine's memory.
ChildOutcome runChild(const std::vector<std::string>& arguments, const ChildLimits& limits = {});

/// Whether the tests (and the programs that they run) are built with AddressSanitizer, which makes memory
/// figures meaningless.
bool sanitized();

}  // namespace carina::test
