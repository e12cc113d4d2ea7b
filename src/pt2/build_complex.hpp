// SPDX-License-Identifier: Apache-2.0
// Translates nodes that compute with complex numbers: to operators on their real and imaginary parts.
#pragma once

#include "pt2/build_node.hpp"

namespace carina::pt2 {

/// Whether an operand, an argument or a result is complex, or the operator is a Fourier transform.
bool computesWithComplex(const GraphDocument& document, const NodeDocument& node);

/// Whether buildComplexNode() knows the operator. It can still refuse operands.
bool knownForComplex(const NodeDocument& node);

/// The same as buildNode() for such a node; the operator must be known.
Status buildComplexNode(const NodeDocument& node, Scope& scope);

}  // namespace carina::pt2
