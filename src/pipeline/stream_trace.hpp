// SPDX-License-Identifier: Apache-2.0
// Runs a command stream of any maker on the NPU model and records what every operation writes, and which
// earlier operations it reads from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "base/work_budget.hpp"
#include "npu/isa/operation.hpp"
#include "pipeline/command_streams.hpp"

namespace carina::pipeline {

/// One kernel operation or DMA transfer, in execution order.
struct TracedStep {
  uint32_t offset = 0;  // of its command
  std::string text;     // "conv 16x1x128 s8 <- 4x1x32 s8, kernel 1x1 stride 1x1"
  bool isKernel = false;
  Shape shape;  // height, width, depth of the OFM as stored in memory
  /// OFM in row-major order of `shape`, sign-extended; empty for DMAs and for operations that pass their
  /// result on within a chain.
  std::vector<int64_t> elements;
  int32_t elementBytes = 0;
  std::vector<size_t> readsFrom;  // steps whose results it reads, each once
};

struct StreamTrace {
  std::vector<TracedStep> steps;
  std::vector<std::vector<std::byte>> outputs;  // per output of the stream
};

/// `inputs`: bytes of each input in the order of `stream.inputs`. The run and the memory for what it records
/// are charged to `budget`. Errors: a stream without known inputs and outputs, inputs of other sizes, ranges
/// outside the regions, a fault of the model, a run or results beyond the budget.
Result<StreamTrace> traceStream(const CommandStream& stream, std::span<const ByteSpan> inputs,
                                WorkBudget& budget);

}  // namespace carina::pipeline
