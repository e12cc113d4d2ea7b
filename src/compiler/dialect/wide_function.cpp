// SPDX-License-Identifier: Apache-2.0
// LOGISTIC and TANH of wide values (wide_function.hpp).
#include "compiler/dialect/wide_function.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace carina::npu_ir {
namespace {

/// 65536 * logistic(i / 24), raised by half the error of linear interpolation midway to the next entry.
int64_t logisticEntry(int64_t i) {
  static const std::array<int64_t, 256> entries = [] {
    const auto exact = [](double at) { return 65536.0 / (1.0 + std::exp(-at / 24.0)); };
    std::array<int64_t, 256> values{};
    for (size_t k = 0; k < values.size(); ++k) {
      const auto at = static_cast<double>(k);
      const double missed = exact(at + 0.5) - (exact(at) + exact(at + 1)) / 2;
      values[k] = std::llround(exact(at) + missed / 2);
    }
    values.back() = 65535;
    return values;
  }();
  return entries[static_cast<size_t>(std::min<int64_t>(i, 255))];
}

int fractionBits(bool tanh) {
  return tanh ? 8 : 9;
}

}  // namespace

int64_t wideFunction(bool tanh, int64_t v) {
  const int bits = fractionBits(tanh);
  const int64_t size = std::abs(v), index = size >> bits, fraction = size & ((int64_t{1} << bits) - 1);
  int64_t fine =
      (logisticEntry(index) << bits) + fraction * (logisticEntry(index + 1) - logisticEntry(index));
  if (index >= 255) fine = tanh ? int64_t{0xffff} << 8 : int64_t{0x7fff} << 10;
  if (tanh) {
    fine -= int64_t{1} << 23;
    return ((v < 0 ? -fine - 1 : fine) + 128) >> 8;
  }
  return v < 0 ? ((int64_t{1} << 25) - fine + 511) >> 10 : (fine + 512) >> 10;
}

bool needsLogisticEnd(int64_t least) {
  return least <= -255 * (int64_t{1} << fractionBits(false));
}

Tensor wideFunctionTable(bool logisticEnd) {
  const auto entry = [](int64_t i) { return i >= 0 ? logisticEntry(i) - 32768 : 32768 - logisticEntry(-i); };
  Tensor words = Tensor::zeros(DType::Int32, {512});
  for (int64_t i = -256; i < 256; ++i) {
    int64_t base = entry(i), slope = entry(i + 1) - base;
    // From index 255 on the function does not follow the entries: the logistic one ends at 1 / 32768, which
    // is also its value just before.
    if (logisticEnd && i < -254) {
      base = entry(-254);
      slope = 0;
    }
    words.setIntegerAt(i + 256, static_cast<int32_t>((static_cast<uint32_t>(slope) << 16) |
                                                     (static_cast<uint32_t>(base) & 0xffff)));
  }
  return words;
}

int64_t wideTableEntry(const Tensor& table, bool tanh, int64_t v) {
  const int bits = fractionBits(tanh);
  const int64_t steps = int64_t{1} << bits;
  const int64_t x =
      std::clamp<int64_t>(v, -256 * steps + (v < -256 * steps ? steps - 1 : 0), 256 * steps - 1);
  const auto word = static_cast<uint32_t>(table.integerAt((x >> bits) + 256));
  const int64_t base = static_cast<int16_t>(word & 0xffff), slope = word >> 16;
  const int64_t fine = base * steps + slope * (x & (steps - 1)) - (v < 0 ? 1 : 0);
  return tanh ? (fine + 128) >> 8 : (fine + (int64_t{1} << 24) + 512) >> 10;
}

}  // namespace carina::npu_ir
