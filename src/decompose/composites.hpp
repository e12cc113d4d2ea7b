// SPDX-License-Identifier: Apache-2.0
// Composite operators that torch.export leaves in place and that a few simpler ones compute exactly:
// tensordot, take_along_dim, embedding_bag, batch norm under its native names, ...
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Replaces each composite by the simpler operators, including in nested graphs. For functional graphs
/// (functionalize.hpp). Composites whose additional results are used, and forms that PyTorch would reject,
/// are kept.
Status replaceComposites(ir::Graph& graph);

/// An operator of the table (findOperator), or one that exists only until replaceComposites(); null if it is
/// neither.
const ir::OpDef* findReadable(std::string_view name);

}  // namespace carina::decompose
