// SPDX-License-Identifier: Apache-2.0
// Norms with a small number outside of the root, (x - mean) / (std + 1e-5), as layer and RMS norms.
#pragma once

#include <span>

#include "quantize/quantize.hpp"

namespace carina::quantize {

/// Replaces written-out norms of which the divisor is max(length, guard) or length + guard by layer and RMS
/// norms, where the guard changes a row of the samples, and of any values with the same codes, by less than
/// the codes of the row round it.
Status useGuardedNorms(ir::Graph& graph, const Options& options, std::span<const Sample> samples);

}  // namespace carina::quantize
