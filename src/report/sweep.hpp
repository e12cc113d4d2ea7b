// SPDX-License-Identifier: Apache-2.0
// The comparison table of carina sweep.
#pragma once

#include <string>
#include <vector>

#include "pipeline/sweep.hpp"

namespace carina::report {

/// One line per configuration; the fastest and the smallest are marked.
std::string sweepText(const std::vector<pipeline::SweepRow>& rows);
/// Stable JSON (docs/commands/sweep.md).
std::string sweepJson(const std::vector<pipeline::SweepRow>& rows);

/// The same as comma-separated values.
std::string sweepCsv(const std::vector<pipeline::SweepRow>& rows);

}  // namespace carina::report
