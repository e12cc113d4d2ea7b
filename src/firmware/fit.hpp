// SPDX-License-Identifier: Apache-2.0
// Whether a program fits a board, and what would make it fit.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "firmware/boards.hpp"
#include "pipeline/gates.hpp"
#include "pipeline/inference_time.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::firmware {

struct FitBlock {
  std::string what;  // "arena", "cache", "program", "pools", "method memory", "stack"
  int64_t bytes = 0;
};

/// A memory of the board and its contents.
struct MemoryUse {
  BoardMemory memory;
  std::vector<FitBlock> blocks;
  int64_t used() const;
  int64_t over() const { return std::max<int64_t>(used() - memory.bytes, 0); }
  int64_t free() const { return std::max<int64_t>(memory.bytes - used(), 0); }
};

/// A tensor that is live when arena use is at its peak.
struct PeakTensor {
  std::string name, what;
  int64_t bytes = 0;
};

/// A change of options and its effect.
struct FitFix {
  std::string change;  // "--memory-mode Sram_Only"
  bool fits = false;
  int64_t over = 0;    // bytes that are still missing
  int64_t cycles = 0;  // of an inference
};

struct FitOptions {
  pipeline::Options build;  // of a network, or the file of a program; target and memory mode may be empty
  const Board* board = nullptr;
  std::string core;        // that runs the CPU part, for timing; empty: the board's
  int64_t stackBytes = 0;  // 0: as the program's kernels require
};

struct Fit {
  std::string file;
  const Board* board = nullptr;
  npu::Machine machine;
  bool isNetwork = false;
  std::vector<MemoryUse> memories;
  int64_t constantBytes = 0, commandBytes = 0;  // of the program
  std::string peakStep;                         // where arena use is at its peak; empty: not known
  std::vector<PeakTensor> peak;                 // the largest first
  std::optional<pipeline::InferenceTime> inference;
  pipeline::Measured measured;  // for gates; SQNR with Options::estimateAccuracy
  std::vector<FitFix> fixes;    // if it does not fit: those that make it fit first, by cycles
  std::vector<Diagnostic> warnings;
  std::string program;  // the .pte of a network that fits, compiled for the board

  int64_t over() const;
  bool fits() const { return over() == 0; }
  const MemoryUse* memoryOf(std::string_view what) const;
};

/// Fits a network (which is compiled for the board first) or a program. Errors: it cannot be compiled or
/// read, or was compiled for another NPU.
Result<Fit> fit(const FitOptions& options);

/// The sizes and placement as a C header, and as a linker script fragment with a section for each block.
std::string memoryHeader(const Fit& fit);
std::string linkerFragment(const Fit& fit);

}  // namespace carina::firmware
