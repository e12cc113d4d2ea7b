// SPDX-License-Identifier: Apache-2.0
// Everything about an exported program that cannot be served, found before a graph is built, so that all
// reasons come at once.
#pragma once

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Dynamic shapes, element types without counterpart, sparse tensors, loops over slices, custom operators and
/// objects, operators in training mode, random numbers. Each diagnostic names input or node, the reason and a
/// remedy; a reason that follows from another one is left out.
Status checkServable(const ProgramDocument& program);

/// The operator's name in the aten table ("aten.conv2d.default") of a target "torch.ops.aten.conv2d.default";
/// the target itself when it has another form.
std::string_view operatorName(std::string_view target);

/// Nodes without results that only check what was known at export.
bool isAssertion(std::string_view target);

/// Regions that only set a mode for the operators in them: their subgraph replaces them. The mode of
/// torch.autocast shows in the recorded types of the results.
bool isGradRegion(std::string_view target);
bool isAutocastRegion(std::string_view target);

/// torch.cond and torch.while_loop: a region runs or not, or again.
bool isControlFlow(std::string_view target);

/// The type that a tensor description stands for, or why there is none.
Result<ir::Type> typeOf(const TensorMeta& meta);

}  // namespace carina::pt2
