// SPDX-License-Identifier: Apache-2.0
// What a program needs to run, derived from the file alone: memory, kernels, NPU, command streams; and what
// would fail.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "delivery/at_load.hpp"
#include "npu/targets/target.hpp"
#include "pipeline/port_codes.hpp"
#include "pte/tensor_data.hpp"

namespace carina::pipeline {

struct CheckedKernel {
  std::string name;  // "aten::add.out"
  size_t calls = 0;
  bool present = false;  // in this library
};

struct CheckedTensor {
  std::string type;  // "float32[1,3,8,8]"; "number 3" if the program holds one instead of a tensor
  int64_t bytes = 0;
  bool planned = false;  // resides in a pool of the program; otherwise the caller provides memory
  PortCodes codes;       // of the first method, as far as the program records them
};

struct CheckedDelegate {
  std::string id;                                // as in the program
  std::string target, systemConfig, memoryMode;  // what it was compiled for; empty for other backends
  int64_t blobBytes = 0, commandBytes = 0, constantBytes = 0;
  int64_t scratchBytes = 0;      // temporary memory, aligned to 16
  int64_t fastScratchBytes = 0;  // additional on-chip memory (Dedicated_Sram)
  size_t inputs = 0, outputs = 0;
};

struct CheckedMethod {
  std::string name;
  bool describesCodes = false;  // computes nothing: describes the codes of another method
  std::vector<int64_t> pools;   // bytes by memory id, the first is id 1
  int64_t methodBytes =
      0;  // tables of the runtime, with this machine's pointers (a 32-bit device needs about half)
  int64_t temporaryBytes = 0;  // of the largest delegate, aligned to 16
  std::vector<CheckedTensor> inputs, outputs;
  std::vector<CheckedKernel> kernels;
  std::vector<CheckedDelegate> delegates;
};

struct Check {
  int64_t fileBytes = 0;
  std::optional<delivery::AtLoad> atLoad;  // of TOSA parts; everything here describes their compiled form
  std::vector<CheckedMethod> methods;
  size_t commandStreams = 0;          // that the NPU checker has checked
  std::vector<std::string> problems;  // one sentence each: what would fail and why; empty: it runs
  bool ok() const { return problems.empty(); }
};

/// `file` is a .pte of any maker, or a .bpte that contains one (untrusted); `tensorData` is what it
/// references by name. Parts that are TOSA graphs are compiled first, as they would be at load. A file that
/// cannot be read at all is an error; everything else is reported in `problems`.
Result<Check> checkProgram(ByteSpan file, std::span<const pte::TensorData> tensorData = {});

}  // namespace carina::pipeline
