// SPDX-License-Identifier: Apache-2.0
// The results of a search for the precision of layers, as text and machine-readable.
#pragma once

#include <string>

#include "precision/auto_precision.hpp"

namespace carina::report {

/// The programs that were built, by cycles, and the layers that are 16x8 in the chosen one.
std::string precisionText(const precision::AutoPrecision& found);

/// All of it, every layer included (docs/schema/precision.json).
std::string precisionJson(const precision::AutoPrecision& found, const precision::Goal& goal,
                          const pipeline::Options& options);

/// The programs that were built, one per line.
std::string precisionCsv(const precision::AutoPrecision& found);

/// Lines that a rules file begins with: its purpose, and the figures of the program built with it.
std::string precisionComment(const precision::AutoPrecision& found, const pipeline::Options& options);

/// Why a goal is out of reach, and what comes closest. Only if no program was chosen.
Diagnostic precisionMiss(const precision::AutoPrecision& found, const precision::Goal& goal);

}  // namespace carina::report
