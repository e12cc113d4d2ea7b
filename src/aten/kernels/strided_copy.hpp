// SPDX-License-Identifier: Apache-2.0
// Copies between a dense tensor and a strided region of another one.
#pragma once

#include <array>

#include "aten/kernels/broadcast.hpp"
#include "aten/movement.hpp"

namespace carina::aten {

/// body(first dense element, count, first strided element, step) over runs of the innermost dimension.
template <typename Body>
void walkStrided(const Shape& shape, const Shape& strides, Body&& body) {
  const BroadcastLoop<1> loop(shape, {strides});
  loop.run([&](int64_t first, int64_t n, const std::array<int64_t, 1>& at,
               const std::array<int64_t, 1>& step) { body(first, n, at[0], step[0]); });
}

/// The elements that `move` reads, dense.
Tensor stridedCopy(const Tensor& from, const Movement& move);
/// Writes `from` (same number and size of elements) to the positions that `move` describes in `to`.
void stridedStore(Tensor& to, const Movement& move, const Tensor& from);

}  // namespace carina::aten
