// SPDX-License-Identifier: Apache-2.0
// The contents of a file as text, and whether its command streams are sound.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/file_contents.hpp"

namespace carina::pipeline {

/// By content: .pt2 and .tosa: the graph with source names; .pte, .bpte, .tflite: methods, tensors,
/// operators, memory, test cases; .ptd, .npz and .npy: names, types and shapes; blobs. Followed by every
/// command stream, disassembled.
Result<std::string> inspectFile(const std::filesystem::path& file, const InspectOptions& options = {});

struct CheckedFile {
  size_t streams = 0, words = 0;      // checked
  std::vector<std::string> findings;  // each names stream, byte offset and problem
};
/// Runs the checker over the command streams of a file, without executing them (npu/check_stream.hpp).
Result<CheckedFile> checkFile(const std::filesystem::path& file, const InspectOptions& options = {});

}  // namespace carina::pipeline
