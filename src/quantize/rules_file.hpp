// SPDX-License-Identifier: Apache-2.0
// The file that --quantize-config names (docs/quantization.md): JSON with // comments.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "quantize/settings.hpp"

namespace carina::quantize {

/// What a file says; what it leaves out stays as the command line has it.
struct RulesFile {
  Overrides global;
  std::vector<Rule> rules;
  /// Precision::Float: the program takes (returns) floats.
  std::optional<BoundarySettings> inputs, outputs;
  std::optional<bool> equalize, fitWeights, correctBiases;
};

/// Errors name line and column of bad JSON, and the entry ("rules[2].observer") of what is no setting.
Result<RulesFile> parseRules(std::string_view text);
Result<RulesFile> readRules(const std::filesystem::path& path);

/// The file that says this; parseRules reads it back. `comment`: lines to begin with, without "//".
std::string rulesText(const RulesFile& rules, std::string_view comment = "");

}  // namespace carina::quantize
