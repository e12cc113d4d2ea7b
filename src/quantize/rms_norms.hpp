// SPDX-License-Identifier: Apache-2.0
// Layer norms of rows that have no mean.
#pragma once

#include "ir/graph.hpp"

namespace carina::quantize {

/// A layer norm takes the mean off its rows, whatever that is. Where its rows are sums of what linear layers,
/// convolutions, embeddings and constants make, as the residual stream of a transformer with norms in front
/// of its blocks, and nobody but such norms reads them, their weights may have no mean along the row: then
/// nor have the rows, and the norm is an RMS norm of the same result up to float rounding. That takes fewer
/// operations, and 8-bit rows need no widening to 32 bits for their squares. The weights become constants of
/// their own where others read them, too. Layer norms with weights, or over several dimensions, stay.
Status useRmsNorms(ir::Graph& graph);

}  // namespace carina::quantize
