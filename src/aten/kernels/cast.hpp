// SPDX-License-Identifier: Apache-2.0
// Element type conversion like PyTorch's on x86: floats to integers truncate, integers wrap.
#pragma once

#include "base/tensor.hpp"

namespace carina::aten {

/// Returns the tensor itself if it already has the type.
Tensor castTo(const Tensor& tensor, DType to);

}  // namespace carina::aten
