// SPDX-License-Identifier: Apache-2.0
// One graph of any file that holds some.
#pragma once

#include <filesystem>
#include <string>

#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// The graph of a text (.ir, see ir/parser.hpp), or a network as its reader gives it: .pt2 (`program`: which
/// of several), .tosa, quantized .tflite. Errors name the file.
Result<ir::Graph> readGraph(const std::filesystem::path& file, const std::string& program = "");

/// A float aten graph decomposed and quantized as the front of build() does it with its default settings.
/// `file`: where the graph is from, for messages. Errors: other dialects, and those of the quantizer.
Result<Front> quantizeGraph(ir::Graph graph, const std::filesystem::path& file,
                            const std::filesystem::path& calibration, bool trusted = false);

}  // namespace carina::pipeline
