// SPDX-License-Identifier: Apache-2.0
// The texts that are made for one program: a C++ source with its description, an assembler file with its
// bytes, a linker script with its places.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "firmware/plan.hpp"

namespace carina::firmware {

struct SourceOptions {
  std::string programName;               // for comments and the report of the image
  std::string core;                      // "cortex-m33"
  bool poll = false;                     // the NPU's status instead of its interrupt
  uint32_t timeoutMilliseconds = 60000;  // of one NPU job; 0: none
  bool validate = false;                 // commands are checked against their memory before each NPU job
  double tolerance = 0;                  // absolute, for float outputs against expected ones
  uint32_t printed = 1000;               // elements of each output that the image prints
};

/// File names and contents, for a folder of their own. Binary files are named by the assembler file.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;
SourceFiles makeSources(const Plan& plan, ByteSpan program, const SourceOptions& options);

/// Registers of a timing adapter that make memory as fast as the system configuration says.
struct TimingAdapterValues {
  uint32_t maxReads, maxWrites, maxBoth, readLatency, writeLatency, pulseOn, pulseOff, bandwidth;
};
TimingAdapterValues timingAdapter(const npu::Machine& machine, size_t port);

}  // namespace carina::firmware
