// SPDX-License-Identifier: Apache-2.0
// Nodes that exporters leave behind although nothing reads their results.
#pragma once

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Removes assertions, and torch operators without side effects whose results are all unused: they are no
/// reason to reject a program. (wav2vec2 draws random numbers for a layer drop that only training uses.)
void eraseUnusedNodes(GraphDocument& graph);

}  // namespace carina::pt2
