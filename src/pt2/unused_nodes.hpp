// SPDX-License-Identifier: Apache-2.0
// Nodes that exporters leave behind though nobody reads what they make.
#pragma once

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Takes out what nobody reads: operators of torch that write nothing, all of whose results are unused. What
/// they are is no reason to refuse a program. (wav2vec2 throws dice for a layer drop that only training looks
/// at.)
void eraseUnusedNodes(GraphDocument& graph);

}  // namespace carina::pt2
