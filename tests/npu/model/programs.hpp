// SPDX-License-Identifier: Apache-2.0
// NPU programs of other compilers, ready to run on the model: the vectors under vectors/programs and the
// delegate blobs in ExecuTorch files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "npu/model/model.hpp"

namespace carina::test {

struct ProgramIo {
  uint64_t offset = 0;  // in the scratch region
  int64_t bytes = 0;
};

struct NpuProgram {
  std::string name;
  const npu::Target* target = nullptr;
  std::vector<uint32_t> words;
  std::vector<std::byte> constants;
  uint64_t scratchBytes = 0, fastScratchBytes = 0;
  std::vector<ProgramIo> inputs, outputs;
};

struct ProgramRun {
  npu::RunResult result;
  std::vector<std::vector<std::byte>> outputs;
};

/// Every delegate blob in an ExecuTorch file, in file order; blobs are found by their marker.
Result<std::vector<NpuProgram>> delegatesIn(const std::filesystem::path& file);

/// Runs on fresh scratch memory filled with a pattern. inputs[i].size() must match the program's input i.
Result<ProgramRun> runProgram(const NpuProgram& program, const std::vector<ByteSpan>& inputs,
                              const npu::ModelOptions& options = {});

/// The contents of the file.
std::vector<std::byte> fileBytes(const std::filesystem::path& path);

}  // namespace carina::test
