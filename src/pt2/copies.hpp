// SPDX-License-Identifier: Apache-2.0
// Operators that return a view of their operand if they can, and a copy otherwise: writes to a view are
// visible in the operand, writes to a copy are not.
#pragma once

#include <string_view>

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Whether `target` ("torch.ops.aten.reshape.default") copied its operand at export, judging by the recorded
/// strides. False for operators that never copy, and if a size or stride is not known.
bool copied(std::string_view target, const TensorMeta& operand, const TensorMeta& result);

}  // namespace carina::pt2
