// SPDX-License-Identifier: Apache-2.0
// Translates Fourier transforms: their arguments, in the forms that export and run_decompositions() leave.
#pragma once

#include "pt2/build_node.hpp"

namespace carina::pt2 {

/// torch.fft.*, torch.stft, torch.istft and what they are decomposed to.
bool isFourier(const NodeDocument& node);
/// Whether buildFourierNode() knows the operator. It can still refuse operands.
bool knownFourier(const NodeDocument& node);
/// The same as buildNode() for such a node.
Status buildFourierNode(const NodeDocument& node, Scope& scope);

}  // namespace carina::pt2
