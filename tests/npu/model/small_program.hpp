// SPDX-License-Identifier: Apache-2.0
// A few operations on small dense feature maps in one arena, written to a command stream and run.
#pragma once

#include <string>
#include <vector>

#include "npu/isa/stream.hpp"
#include "npu/model/model.hpp"

namespace carina::test {

class SmallProgram {
 public:
  explicit SmallProgram(const char* target);

  const npu::Target& target() const { return *machine_.target; }
  const npu::Machine& machine() const { return machine_; }

  /// A dense NHWC feature map in region 1 that holds `values`.
  npu::FeatureMap map(int h, int w, int c, npu::ElementType type, const std::vector<int64_t>& values);
  /// A 1x1 pool that copies a new feature map with these values to another new one, unscaled.
  npu::KernelOperation copy(int h, int w, int c, npu::ElementType type, const std::vector<int64_t>& values);

  void add(npu::Operation operation);
  uint32_t position() const { return writer_.position(); }
  /// Sets the target of a branch to the current position.
  void patchBranch(uint32_t branch) { writer_.patchBranch(branch, position()); }

  /// Adds STOP and runs. Returns the fault, or an empty string.
  std::string run(const npu::ModelOptions& options = {});
  const npu::RunResult& result() const { return result_; }
  std::vector<uint32_t> words() const { return {writer_.words().begin(), writer_.words().end()}; }
  std::vector<std::byte>& arena() { return arena_; }

  /// The elements of a dense NHWC feature map after the run.
  std::vector<int64_t> values(const npu::FeatureMap& map) const;

 private:
  npu::Machine machine_;
  npu::StreamWriter writer_;
  std::vector<std::byte> arena_;
  npu::RunResult result_;
};

}  // namespace carina::test
