// SPDX-License-Identifier: Apache-2.0
// The results of an evaluation.
#pragma once

#include <string>

#include "evaluate/evaluate.hpp"

namespace carina::report {

/// Figures of all engines side by side, flipped samples, first bad layers.
std::string evaluationText(const evaluate::Evaluation& evaluation);
/// Stable JSON (docs/schema/evaluate.json). Nothing in it depends on time or on the number of shards.
std::string evaluationJson(const evaluate::Evaluation& evaluation);
/// The figures as comma-separated values.
std::string evaluationCsv(const evaluate::Evaluation& evaluation);

}  // namespace carina::report
