// SPDX-License-Identifier: Apache-2.0
// Compiled NPU programs of other compilers: the vectors under vectors/programs and the delegate blobs inside
// ExecuTorch files, ready to run on the model.
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

/// Every delegate blob in an ExecuTorch file, in file order (found by its marker, wherever the file keeps
/// it).
Result<std::vector<NpuProgram>> delegatesIn(const std::filesystem::path& file);

/// Runs on fresh scratch memory filled with a pattern. inputs[i].size() must be what the program takes.
Result<ProgramRun> runProgram(const NpuProgram& program, const std::vector<ByteSpan>& inputs,
                              const npu::ModelOptions& options = {});

/// Whole file.
std::vector<std::byte> fileBytes(const std::filesystem::path& path);

}  // namespace carina::test
