// SPDX-License-Identifier: Apache-2.0
// The memory of a TFLite model while it runs: the planned arena, tensors outside it, and variables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "carina/ethosu_driver.hpp"
#include "device/aligned_buffer.hpp"
#include "tflite/vela.hpp"

namespace carina::device {

class TfliteMemory {
 public:
  /// `program` must outlive this.
  explicit TfliteMemory(const tflite::NpuProgram& program) : program_(program), arena_(program.arenaBytes) {}

  size_t arenaBytes() const { return arena_.size(); }
  const tflite::Tensor& tensor(size_t subgraph, int32_t index) const {
    return program_.subgraphs[subgraph].tensors[static_cast<size_t>(index)];
  }
  size_t bytes(size_t subgraph, int32_t index) const {
    return static_cast<size_t>(*tflite::storedBytes(tensor(subgraph, index)));
  }

  /// Allocates memory for a tensor that is not in the plan; constants get their contents.
  void place(size_t subgraph, int32_t index);
  rt::Region region(size_t subgraph, int32_t index);
  /// Copies one tensor to another of the same size.
  void copy(size_t fromSubgraph, int32_t from, size_t toSubgraph, int32_t to);

 private:
  bool planned(size_t subgraph, int32_t index) const {
    return program_.subgraphs[subgraph].offsets[static_cast<size_t>(index)].has_value();
  }

  const tflite::NpuProgram& program_;
  AlignedBuffer arena_;
  std::map<std::pair<size_t, int32_t>, AlignedBuffer> own_;
};

/// Resource variables: what VAR_HANDLE names, ASSIGN_VARIABLE writes and READ_VARIABLE reads.
class TfliteVariables {
 public:
  /// `most`: limit on the bytes of all variables together.
  explicit TfliteVariables(int64_t most) : left_(most) {}
  /// The handle of the variable with this name.
  int32_t handleOf(const std::string& name);
  /// Sets the size and initial contents of a variable; the first call counts.
  Status describe(int32_t handle, size_t bytes, std::byte initial);
  Status assign(int32_t handle, ByteSpan contents);
  Status read(int32_t handle, std::span<std::byte> into) const;
  /// As if nothing had been assigned.
  void reset();

 private:
  struct Variable {
    std::byte initial{};
    std::vector<std::byte> contents;
  };
  Status check(int32_t handle, size_t bytes) const;

  int64_t left_;
  std::map<std::string, int32_t> handles_;
  std::vector<Variable> variables_;
};

}  // namespace carina::device
