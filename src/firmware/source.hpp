// SPDX-License-Identifier: Apache-2.0
// The files that are generated for one program: a C++ source with its description, an assembler file with its
// bytes, and a linker script with its placement.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "firmware/plan.hpp"

namespace carina::firmware {

struct SourceOptions {
  std::string programName;               // for comments and the report of the image
  std::string core;                      // "cortex-m33"
  bool poll = false;                     // poll the NPU's status instead of using its interrupt
  uint32_t timeoutMilliseconds = 60000;  // of one NPU job; 0: none
  bool validate = false;                 // commands are checked against their memory before each NPU job
  double tolerance = 0;                  // absolute, of float outputs from the expected ones
  uint32_t printed = 1000;               // elements of each output that the image prints
};

/// File names and contents, for a separate folder. The assembler file refers to the binary files by name.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;
SourceFiles makeSources(const Plan& plan, ByteSpan program, const SourceOptions& options);

/// Register values of a timing adapter that give memory the speed of the system configuration.
struct TimingAdapterValues {
  uint32_t maxReads, maxWrites, maxBoth, readLatency, writeLatency, pulseOn, pulseOff, bandwidth;
};
TimingAdapterValues timingAdapter(const npu::Machine& machine, size_t port);

}  // namespace carina::firmware
