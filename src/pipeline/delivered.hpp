// SPDX-License-Identifier: Apache-2.0
// The file of a program, as Options::delivery wants it written.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// The contents of the .pte of a build, with TOSA graphs for its NPU parts where its options say so; or of
/// the .tflite that alone can hold the program.
Result<std::string> programFile(const Build& build);
Result<std::string> programFile(const MethodsBuild& build);

/// addOutput() where programFile() is at hand already: a program of many weights is written once.
Status addOutput(const Build& build, const std::filesystem::path& output, const std::string& program,
                 OutputFiles& files);

}  // namespace carina::pipeline
