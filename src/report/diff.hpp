// SPDX-License-Identifier: Apache-2.0
// Two programs or measurements side by side.
#pragma once

#include <string>

#include "pipeline/ledger.hpp"

namespace carina::report {

/// Totals, then the layers that differ (all of them with `allLayers`).
std::string diffText(const pipeline::LedgerDiff& diff, bool allLayers);
/// The same for a comment on a pull request.
std::string diffMarkdown(const pipeline::LedgerDiff& diff, bool allLayers);
/// All layers (docs/schema/diff.json).
std::string diffJson(const pipeline::LedgerDiff& diff);
/// The table of layers, all of them.
std::string diffCsv(const pipeline::LedgerDiff& diff);

}  // namespace carina::report
