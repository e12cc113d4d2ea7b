// SPDX-License-Identifier: Apache-2.0
// The file that --quantize-config names (docs/quantization.md): JSON with // comments.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "quantize/settings.hpp"

namespace carina::quantize {

/// The contents of a file; the command line decides what it leaves out.
struct RulesFile {
  Overrides global;
  std::vector<Rule> rules;
  /// Precision::Float: the program takes (returns) floats.
  std::optional<BoundarySettings> inputs, outputs;
  std::optional<bool> equalize, fitWeights, correctBiases;
};

/// Errors name the line and column of malformed JSON, or the entry ("rules[2].observer") of an invalid
/// setting.
Result<RulesFile> parseRules(std::string_view text);
Result<RulesFile> readRules(const std::filesystem::path& path);

/// The text of a file with these rules, which parseRules() reads back. `comment`: leading lines, without
/// "//".
std::string rulesText(const RulesFile& rules, std::string_view comment = "");

}  // namespace carina::quantize
