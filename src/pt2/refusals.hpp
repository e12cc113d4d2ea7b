// SPDX-License-Identifier: Apache-2.0
// Finds everything in an exported program that is not supported, before a graph is built, so that all reasons
// are reported at once.
#pragma once

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Rejects dynamic shapes, unsupported element types, sparse tensors, loops over slices, custom operators and
/// objects, operators in training mode, and random numbers. Each diagnostic names the input or node, the
/// reason and a remedy; reasons that follow from another one are left out.
Status checkServable(const ProgramDocument& program);

/// The name in the aten table ("aten.conv2d.default") for a target "torch.ops.aten.conv2d.default"; targets
/// of another form are returned unchanged.
std::string_view operatorName(std::string_view target);

/// Nodes without results that only assert what was known at export.
bool isAssertion(std::string_view target);

/// Regions that only set a mode for the operators in them: they are replaced by their subgraph. The mode of
/// torch.autocast is visible in the recorded result types.
bool isGradRegion(std::string_view target);
bool isAutocastRegion(std::string_view target);

/// torch.cond and torch.while_loop: regions run conditionally or repeatedly.
bool isControlFlow(std::string_view target);

/// The type that a tensor description denotes, or why there is none.
Result<ir::Type> typeOf(const TensorMeta& meta);

}  // namespace carina::pt2
