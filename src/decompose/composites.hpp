// SPDX-License-Identifier: Apache-2.0
// Composite operators that torch.export leaves in place and that a few simpler ones compute exactly:
// tensordot, take_along_dim, embedding_bag, batch norm under its native names, ...
#pragma once

#include "ir/graph.hpp"

namespace carina::decompose {

/// Puts the simpler operators in the place of each composite, in nested graphs too. For functional graphs
/// (functionalize.hpp). Composites whose further results are used, and forms that PyTorch would refuse, stay.
Status replaceComposites(ir::Graph& graph);

/// An operator of the table (findOperator), or one that exists only until replaceComposites(); null when it
/// is neither.
const ir::OpDef* findReadable(std::string_view name);

}  // namespace carina::decompose
