// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inference_of_run.hpp"

#include "device/npu_setup.hpp"
#include "npu/targets/recorded_memories.hpp"

namespace carina::pipeline {

Result<std::optional<InferenceTime>> inferenceOfRun(ByteSpan program, const RunOptions& options,
                                                    const device::RunStats& stats, const std::string& core) {
  if (stats.target.empty()) return inferenceOf(program, options.method, 0, nullptr, core);
  // The memories recorded in the program apply if the run was counted with them.
  std::string recorded;
  if (const auto read = pte::readProgram(program)) {
    const auto compiled = device::compiledFor(*read);
    if (compiled.ok()) recorded = compiled->settings.memories;
  }
  const auto machine =
      npu::makeMachine(stats.target, stats.systemConfig, stats.memoryMode, options.configFile, recorded);
  return inferenceOf(program, options.method, stats.npuCycles, machine.ok() ? &*machine : nullptr, core);
}

}  // namespace carina::pipeline
