// SPDX-License-Identifier: Apache-2.0
// What is in a file, as text.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace carina::pipeline {

/// .pt2 and .tosa: the graph with source names; .pte: methods, memory, delegates with disassembled command streams; .bin:
/// delegate blob; .npz and .npy: names, types and shapes.
Result<std::string> inspectFile(const std::filesystem::path& file);

}  // namespace carina::pipeline
