// SPDX-License-Identifier: Apache-2.0
// What a language model generated, and how fast.
#pragma once

#include <string>

#include "pipeline/generate.hpp"

namespace carina::report {

/// Two lines: tokens and time of the prompt, and of what came behind it.
std::string generatedText(const pipeline::Generated& result);
/// docs/commands/generate.md has the members.
std::string generatedJson(const pipeline::Generated& result);

}  // namespace carina::report
