// SPDX-License-Identifier: Apache-2.0
// Geometry of convolutions and pools along one spatial dimension.
#pragma once

#include "call.hpp"

namespace carina::rt::kernels {

struct Window {
  int64_t size = 1;    // of the input
  int64_t output = 1;  // of the output
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1, outputPadding = 0;

  /// Whether the arithmetic below cannot overflow.
  bool sane() const {
    constexpr int64_t kMost = 1 << 24;
    return kernel >= 1 && stride >= 1 && stride <= kMost && padding >= 0 && padding <= kMost &&
           dilation >= 1 && dilation <= kMost && outputPadding >= 0 && outputPadding <= kMost;
  }
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// Number of outputs of a forward window; with `ceil`, one more if it starts in the input or the leading
  /// padding. 0 if the window does not fit.
  int64_t outputs(bool ceil) const {
    const int64_t span = size + 2 * padding - extent() + (ceil ? stride - 1 : 0);
    if (span < 0) return 0;
    const int64_t count = span / stride + 1;
    return ceil && (count - 1) * stride >= size + padding ? count - 1 : count;
  }
  int64_t transposedOutputs() const { return (size - 1) * stride - 2 * padding + extent() + outputPadding; }
  /// Input index of kernel element `k` at output index `o`; negative if outside the input.
  int64_t tap(int64_t o, int64_t k) const {
    const int64_t i = o * stride - padding + k * dilation;
    return i < size ? i : -1;
  }
  int64_t transposedTap(int64_t o, int64_t k) const {
    const int64_t t = o + padding - k * dilation;
    return t >= 0 && t % stride == 0 && t / stride < size ? t / stride : -1;
  }
};

/// Kernel elements of an output index that fall inside the input: [first, last).
struct Taps {
  int64_t first, last;
  Taps(const Window& window, int64_t o) {
    const int64_t start = o * window.stride - window.padding;
    first = start < 0 ? (-start + window.dilation - 1) / window.dilation : 0;
    const int64_t room = window.size - start;  // elements from the window's start to the end of the input
    const int64_t most = room <= 0 ? 0 : (room + window.dilation - 1) / window.dilation;
    last = most < window.kernel ? most : window.kernel;
  }
};

}  // namespace carina::rt::kernels
