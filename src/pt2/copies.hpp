// SPDX-License-Identifier: Apache-2.0
// Operators that return a view of their operand where they can, and a copy elsewhere: what is written into a
// view shows in the operand, what is written into a copy does not.
#pragma once

#include <string_view>

#include "pt2/document.hpp"

namespace carina::pt2 {

/// Whether `target` ("torch.ops.aten.reshape.default") copied its operand at export, as the recorded strides
/// tell. False for operators that never copy, and where a size or stride is not known.
bool copied(std::string_view target, const TensorMeta& operand, const TensorMeta& result);

}  // namespace carina::pt2
