// SPDX-License-Identifier: Apache-2.0
// What a compiler for Ethos-U leaves in a .tflite: `ethos-u` custom operators, and the offline memory plan
// that says where their tensors lie in the arena.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tflite/model.hpp"

namespace carina::tflite {

/// One `ethos-u` operator. The NPU's regions are: 0 constants, 1 scratch, 2 fast scratch, then inputs, then
/// outputs.
struct NpuCall {
  std::string name;     // "operator 0", "operator 0 of subgraph 2"
  size_t subgraph = 0;  // whose tensors these are
  ByteSpan payload;     // driver payload
  ByteSpan constants;
  int32_t scratch = 0, fastScratch = -1;  // tensor indices; fastScratch -1: none
  std::vector<int32_t> inputs, outputs;   // tensor indices
};

/// What a compiled file computes: `ethos-u` operators, and others that its compiler left to the CPU.
struct NpuProgram {
  struct Step {
    bool isCall = false;  // on the NPU
    size_t index = 0;     // in `calls`, or among the operators of the subgraph
  };
  struct Subgraph {
    std::vector<Tensor> tensors;
    std::vector<std::optional<uint64_t>> offsets;  // per tensor: its place in the arena, by the plan
    std::vector<int32_t> inputs, outputs;          // tensor indices
    std::vector<Step> steps;                       // all operators in execution order
  };
  std::vector<Subgraph> subgraphs;  // the main one first; those that nothing runs have no steps
  std::vector<NpuCall> calls;       // of the subgraphs in their order
  uint64_t arenaBytes = 0;          // up to the end of the last planned tensor

  const Subgraph& main() const { return subgraphs.front(); }
  /// Fast scratch that is no memory of its own: the same place and size as scratch.
  bool sharesScratch(const NpuCall& call) const;
};

/// The `ethos-u` operators of all subgraphs, whatever stands beside them; for looking at, not for running.
std::vector<NpuCall> npuCalls(const Model& model);

/// Of the main subgraph and those that its operators run. A model without `ethos-u` operators has no calls.
/// Errors: a plan that contradicts the tensors, subgraphs that run themselves.
Result<NpuProgram> npuProgram(const Model& model);

/// Bytes that a tensor takes while it is computed with: as tensorBytes(), and those of a number for the
/// handle of a variable.
std::optional<int64_t> storedBytes(const Tensor& tensor);

}  // namespace carina::tflite
