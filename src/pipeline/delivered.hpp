// SPDX-License-Identifier: Apache-2.0
// The file of a program, in the form that Options::delivery selects.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "pipeline/methods.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// The contents of a build's .pte, with TOSA graphs for its NPU parts if its options say so; or of the
/// .tflite, if only that can hold the program.
Result<std::string> programFile(const Build& build);
Result<std::string> programFile(const MethodsBuild& build);

/// addOutput() for a programFile() that is already available, so that a program with many weights is written
/// once.
Status addOutput(const Build& build, const std::filesystem::path& output, const std::string& program,
                 OutputFiles& files);

}  // namespace carina::pipeline
