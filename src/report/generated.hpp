// SPDX-License-Identifier: Apache-2.0
// The text that a language model generated, and the speed.
#pragma once

#include <string>

#include "pipeline/generate.hpp"

namespace carina::report {

/// Two lines: tokens and time of the prompt, and of the generated text.
std::string generatedText(const pipeline::Generated& result);
/// docs/commands/generate.md documents the members.
std::string generatedJson(const pipeline::Generated& result);

}  // namespace carina::report
