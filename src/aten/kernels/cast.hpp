// SPDX-License-Identifier: Apache-2.0
// Element type conversion as PyTorch does it on x86: floats to integers truncate, integers wrap.
#pragma once

#include "base/tensor.hpp"

namespace carina::aten {

/// The tensor itself when it has the type already.
Tensor castTo(const Tensor& tensor, DType to);

}  // namespace carina::aten
