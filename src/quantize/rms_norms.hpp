// SPDX-License-Identifier: Apache-2.0
// Layer norms of rows with zero mean.
#pragma once

#include "ir/graph.hpp"

namespace carina::quantize {

/// Replaces layer norms by RMS norms where their rows can be made to have zero mean. A layer norm subtracts
/// the mean of each row, so its result does not depend on that mean. If every row is a sum of outputs of
/// linear layers, convolutions, embeddings and constants, and only layer norms read it (the residual stream
/// of a pre-norm transformer), subtracting the mean from the weights along the row dimension gives rows of
/// zero mean, for which both norms are equal up to float rounding. The RMS norm takes fewer operations, and
/// squares 8-bit codes without widening them. Weights that other nodes read as well are copied. Layer norms
/// with weights, or over several dimensions, are left as they are.
Status useRmsNorms(ir::Graph& graph);

}  // namespace carina::quantize
