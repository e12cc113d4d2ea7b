// SPDX-License-Identifier: Apache-2.0
// Boards, and whether a program fits on one.
#pragma once

#include <string>

#include "firmware/fit.hpp"

namespace carina::report {

/// A table of memories and their contents; if the program does not fit, also the tensors of the peak and the
/// cheapest changes.
std::string fitText(const firmware::Fit& fit);
/// JSON by docs/schema/fit.json.
std::string fitJson(const firmware::Fit& fit);
/// One row per block of each memory, and one for its free space.
std::string fitCsv(const firmware::Fit& fit);

/// One line per board.
std::string boardsText();
/// JSON by docs/schema/boards.json.
std::string boardsJson();
/// One row per memory of each board.
std::string boardsCsv();

}  // namespace carina::report
