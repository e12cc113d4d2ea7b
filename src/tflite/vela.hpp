// SPDX-License-Identifier: Apache-2.0
// The output of a compiler for Ethos-U in a .tflite: `ethos-u` custom operators, and the offline memory plan
// that places their tensors in the arena.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "tflite/model.hpp"

namespace carina::tflite {

/// One `ethos-u` operator. NPU regions: 0 constants, 1 scratch, 2 fast scratch, then inputs, then outputs.
struct NpuCall {
  std::string name;     // "operator 0", "operator 0 of subgraph 2"
  size_t subgraph = 0;  // that the tensors belong to
  ByteSpan payload;     // driver payload
  ByteSpan constants;
  int32_t scratch = 0, fastScratch = -1;  // tensor indices; fastScratch -1: none
  std::vector<int32_t> inputs, outputs;   // tensor indices
};

/// The program in a compiled file: `ethos-u` operators, and others that its compiler left to the CPU.
struct NpuProgram {
  struct Step {
    bool isCall = false;  // on the NPU
    size_t index = 0;     // in `calls`, or among the operators of the subgraph
  };
  struct Subgraph {
    std::vector<Tensor> tensors;
    std::vector<std::optional<uint64_t>> offsets;  // per tensor: its offset in the arena, from the plan
    std::vector<int32_t> inputs, outputs;          // tensor indices
    std::vector<Step> steps;                       // all operators in execution order
  };
  std::vector<Subgraph> subgraphs;  // the main one first; subgraphs that are never run have no steps
  std::vector<NpuCall> calls;       // in the order of the subgraphs
  uint64_t arenaBytes = 0;          // up to the end of the last planned tensor

  const Subgraph& main() const { return subgraphs.front(); }
  /// Whether fast scratch is not separate memory: the same place and size as scratch.
  bool sharesScratch(const NpuCall& call) const;
};

/// The well-formed `ethos-u` operators of all subgraphs, without checking the rest; for inspection, not for
/// running.
std::vector<NpuCall> npuCalls(const Model& model);

/// The program of the main subgraph and those that its operators run. A model without `ethos-u` operators has
/// no calls. Fails if the plan contradicts the tensors, and on recursive subgraphs.
Result<NpuProgram> npuProgram(const Model& model);

/// Bytes of a tensor at run time: tensorBytes(), or those of an int32 for the handle of a variable.
std::optional<int64_t> storedBytes(const Tensor& tensor);

}  // namespace carina::tflite
