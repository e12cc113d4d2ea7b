// SPDX-License-Identifier: Apache-2.0
// Whether a program has room on a board, and what would make it fit.
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

/// A memory of the board with what lies there.
struct MemoryUse {
  BoardMemory memory;
  std::vector<FitBlock> blocks;
  int64_t used() const;
  int64_t over() const { return std::max<int64_t>(used() - memory.bytes, 0); }
  int64_t free() const { return std::max<int64_t>(memory.bytes - used(), 0); }
};

/// A tensor that is live when most of the arena is.
struct PeakTensor {
  std::string name, what;
  int64_t bytes = 0;
};

/// A change of options and what becomes of it.
struct FitFix {
  std::string change;  // "--memory-mode Sram_Only"
  bool fits = false;
  int64_t over = 0;    // bytes that are still missing
  int64_t cycles = 0;  // of an inference
};

struct FitOptions {
  pipeline::Options build;  // of a network, or the file of a program; target and memory mode may be empty
  const Board* board = nullptr;
  std::string core;        // of the CPU's part, for times; empty: the board's
  int64_t stackBytes = 0;  // 0: what the program's kernels call for
};

struct Fit {
  std::string file;
  const Board* board = nullptr;
  npu::Machine machine;
  bool isNetwork = false;
  std::vector<MemoryUse> memories;
  int64_t constantBytes = 0, commandBytes = 0;  // of the program
  std::string peakStep;                         // where most of the arena is live; empty: not known
  std::vector<PeakTensor> peak;                 // the largest first
  std::optional<pipeline::InferenceTime> inference;
  pipeline::Measured measured;  // for gates; SQNR with Options::estimateAccuracy
  std::vector<FitFix> fixes;    // where it does not fit: those that make it fit first, by cycles
  std::vector<Diagnostic> warnings;
  std::string program;  // the .pte of a network that fits, compiled for the board

  int64_t over() const;
  bool fits() const { return over() == 0; }
  const MemoryUse* memoryOf(std::string_view what) const;
};

/// Of a network (compiled for the board first) or of a program. Errors: it cannot be compiled or read, or was
/// compiled for another NPU.
Result<Fit> fit(const FitOptions& options);

/// The sizes and places as a C header, and as a fragment for a linker script with a section for each block.
std::string memoryHeader(const Fit& fit);
std::string linkerFragment(const Fit& fit);

}  // namespace carina::firmware
