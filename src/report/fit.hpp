// SPDX-License-Identifier: Apache-2.0
// Boards, and whether a program has room on one.
#pragma once

#include <string>

#include "firmware/fit.hpp"

namespace carina::report {

/// A table of memories with what lies there; where it does not fit also the tensors of the peak and the
/// cheapest changes.
std::string fitText(const firmware::Fit& fit);
/// docs/schema/fit.json
std::string fitJson(const firmware::Fit& fit);
/// A row for each block of each memory, and one for what is free of it.
std::string fitCsv(const firmware::Fit& fit);

/// One line for each board.
std::string boardsText();
/// docs/schema/boards.json
std::string boardsJson();
/// A row for each memory of each board.
std::string boardsCsv();

}  // namespace carina::report
