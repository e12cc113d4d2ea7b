// SPDX-License-Identifier: Apache-2.0
// One aten node in kernel form as a call of an ExecuTorch kernel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "pte/method_builder.hpp"

namespace carina::cpu {

/// The program value that holds a graph value; called for operands only.
using ValueOf = std::function<pte::ValueId(const ir::Value*)>;

/// Appends the computation of `node` (kernel form) to the method: nothing for a reshape, whose result is a
/// view of the same bytes. Returns one program value per result. Fails if this library has no kernel for it,
/// naming the missing kernel.
Result<std::vector<pte::ValueId>> emitCall(pte::MethodBuilder& builder, const ir::Node& node,
                                           const ValueOf& valueOf);

/// Sizes of a value as stored in programs; the verifier keeps dimensions below 2^31.
std::vector<int32_t> sizesOf(const ir::Value& value);

}  // namespace carina::cpu
