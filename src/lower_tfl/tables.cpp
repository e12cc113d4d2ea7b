// SPDX-License-Identifier: Apache-2.0
#include "lower_tfl/tables.hpp"

#include <algorithm>
#include <cmath>

namespace carina::lower_tfl {

Tensor interpolatedTable(Function function, const Quantum& from, const Quantum& to) {
  constexpr float kLow = -32768, kHigh = 32767;
  const auto edge = [](float scale, float code, int64_t zero) {
    return scale * (code - static_cast<float>(zero));
  };
  const float first = edge(from.single(), kLow, from.zero), last = edge(from.single(), kHigh, from.zero);
  const float span = edge(to.single(), kHigh, to.zero) - edge(to.single(), kLow, to.zero);
  const float perUnit = 65536.0F / span, step = (last - first) / 512, half = step / 2;
  Tensor table = Tensor::uninitialized(DType::Int16, {513});
  const auto store = [&](int64_t i, float value) {
    const float entry = std::isnan(value) ? 0 : std::min(std::max(value, kLow), kHigh);
    table.setIntegerAt(i, static_cast<int64_t>(entry));
  };
  for (int64_t i = 0; i < 512; ++i) {
    const auto at = static_cast<float>(i);
    const float here = std::round(function(first + at * step) * perUnit);
    const float next = function(first + (at + 1) * step) * perUnit;
    const float between = std::round((next + here) / 2);
    const float middle = std::round(function(first + at * step + half) * perUnit);
    store(i, here - std::round((between - middle) / 2));
  }
  store(512, std::round(function(last) * perUnit));
  return table;
}

ir::Value* wideLookup(Lowering& lowering, ir::Value* codes, const std::array<int32_t, 256>& entries) {
  Emitter& emit = lowering.emit();
  ir::Value* sum = nullptr;
  for (int byte = 0; byte < 4; ++byte) {
    Tensor table = Tensor::uninitialized(DType::Int8, {256});
    const auto parts = table.mutableAs<int8_t>();
    bool used = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int32_t part = entries[i] >> (8 * byte) & 0xff;
      used = used || part != 0;
      parts[i] = static_cast<int8_t>(part - 128);
    }
    if (!used) continue;
    ir::Value* part = lowering.widened(emit.table(codes, std::move(table)), -128, 8 * byte);
    sum = sum ? emit.binary(Binary::Add, sum, part) : part;
  }
  return sum;
}

}  // namespace carina::lower_tfl
