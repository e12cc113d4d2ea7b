// SPDX-License-Identifier: Apache-2.0
// What a search for the precision of layers found, for people and for programs.
#pragma once

#include <string>

#include "precision/auto_precision.hpp"

namespace carina::report {

/// The programs that were made, by cycles, and the layers that the chosen one has in 16x8.
std::string precisionText(const precision::AutoPrecision& found);

/// All of it, every layer included (docs/schema/precision.json).
std::string precisionJson(const precision::AutoPrecision& found, const precision::Goal& goal,
                          const pipeline::Options& options);

/// The programs that were made, a line each.
std::string precisionCsv(const precision::AutoPrecision& found);

/// Lines that a rules file begins with: what it is for, and what the program with it has.
std::string precisionComment(const precision::AutoPrecision& found, const pipeline::Options& options);

/// Why a goal is out of reach, and what comes nearest. Only where no program was chosen.
Diagnostic precisionMiss(const precision::AutoPrecision& found, const precision::Goal& goal);

}  // namespace carina::report
