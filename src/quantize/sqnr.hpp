// SPDX-License-Identifier: Apache-2.0
// Signal to quantization noise ratio.
#pragma once

#include "base/tensor.hpp"

namespace carina::quantize {

/// Energy of a signal and of its error, summed over samples.
struct Sqnr {
  double signal = 0, noise = 0;
  /// One element.
  void add(double want, double found) {
    signal += want * want;
    noise += (found - want) * (found - want);
  }
  /// Tensors of the same shape. Elements whose reference is infinite, NaN or hidden
  /// (hidden_values.hpp) are skipped.
  void add(const Tensor& reference, const Tensor& actual);
  /// Decibels; infinite without error, NaN if nothing was compared.
  double decibels() const;
};

}  // namespace carina::quantize
