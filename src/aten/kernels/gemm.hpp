// SPDX-License-Identifier: Apache-2.0
// Row-major matrix products.
#pragma once

#include <cstdint>

#include "onednn/gemm.hpp"

namespace carina::aten {

using onednn::gemm;
using onednn::gemmTransposedLeft;

/// onednn::gemm() for other element types, with plain loops; integers wrap.
template <typename T>
void gemmOf(bool transposeB, int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta, T* c);

}  // namespace carina::aten
