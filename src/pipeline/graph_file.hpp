// SPDX-License-Identifier: Apache-2.0
// Reads one graph from any file that contains graphs.
#pragma once

#include <filesystem>
#include <string>

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// The graph of a text (.ir, see ir/parser.hpp), or a network as its reader returns it: .pt2 (`program`:
/// which of several), .tosa, quantized .tflite. Errors name the file.
Result<ir::Graph> readGraph(const std::filesystem::path& file, const std::string& program = "");

/// A float aten graph, decomposed and quantized like the front end of build() with default settings. `file`:
/// the origin of the graph, for messages. Errors: other dialects, and those of the quantizer.
Result<Front> quantizeGraph(ir::Graph graph, const std::filesystem::path& file,
                            const std::filesystem::path& calibration, bool trusted = false);

}  // namespace carina::pipeline
