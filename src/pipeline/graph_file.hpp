// SPDX-License-Identifier: Apache-2.0
// One graph of any file that holds some.
#pragma once

#include <filesystem>
#include <string>

#include "ir/graph.hpp"

namespace carina::pipeline {

/// The graph of a text (.ir, see ir/parser.hpp), or a network as its reader gives it: .pt2 (`program`: which
/// of several), .tosa, quantized .tflite. Errors name the file.
Result<ir::Graph> readGraph(const std::filesystem::path& file, const std::string& program = "");

}  // namespace carina::pipeline
