// SPDX-License-Identifier: Apache-2.0
// Products and sums with a constant per channel, as layers absorb them.
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace carina::quantize {

/// y = x * scale + shift per channel.
struct Affine {
  std::vector<float> scale, shift;
};

/// Removes the node, which computes one result, and lets everything that reads the result read `by`. If that
/// has no name, it takes the result's.
void replaceByValue(ir::Node* node, ir::Value* by);

/// Folds the function, which `node` applies to dimension `dim` of its operand `input`, into the weights and
/// biases of all layers that read the result, possibly in another shape or order:
///   weight * (x * scale + shift) + bias = (weight * scale) * x + (weight * shift + bias).
/// The layers are linear layers and convolutions, the latter with a shift only where no padding takes part.
/// Returns whether it did: every reader must be such a layer with weights of its own, and the errors of their
/// codes may have at most `mostNoise` times the power in the results that they have without the scales.
bool foldIntoReaders(ir::Node* node, ir::Value* input, int64_t dim, const Affine& affine, double mostNoise);

}  // namespace carina::quantize
