// SPDX-License-Identifier: Apache-2.0
// The result of carina verify as text.
#pragma once

#include <string>

#include "pipeline/verify.hpp"

namespace carina::report {

/// Verdict, outputs, accuracy of the least accurate values, and every layer that differs (all layers with
/// `allLayers`).
std::string verificationText(const pipeline::Verification& verification, bool allLayers);

/// Stable JSON (docs/schema/verify.json).
std::string verificationJson(const pipeline::Verification& verification);
/// The same for several methods, one of `names` each.
std::string verificationJson(std::span<const std::string> names,
                             std::span<const pipeline::Verification> verifications);

/// One line per output. `names`: those of the methods, or empty for a single network.
std::string verificationCsv(std::span<const std::string> names,
                            std::span<const pipeline::Verification> verifications);

}  // namespace carina::report
