// SPDX-License-Identifier: Apache-2.0
// RESIZE of the U85 (ethosu-numerics 4.5).
#include <algorithm>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

/// Source position of one output index along an axis.
struct Tap {
  int64_t low = 0, high = 0;  // clamped neighbours
  int64_t fraction = 0;       // of `numerator`
};
Tap tapOf(int64_t index, const ResizeAxis& axis, int64_t size) {
  const int64_t at = index * axis.denominator + axis.offset;
  int64_t whole = at / axis.numerator;
  if (at % axis.numerator < 0) --whole;
  Tap tap;
  tap.fraction = at - whole * axis.numerator;
  tap.low = std::clamp<int64_t>(whole, 0, size - 1);
  tap.high = std::clamp<int64_t>(whole + 1, 0, size - 1);
  return tap;
}

}  // namespace

Outcome Executor::resize(const KernelOperation& op, AddressMap& memory) {
  if (!target_.architecture().resize)
    return makeFault(FaultKind::Parse, "RESIZE on {}", familyName(target_.family));
  if (op.resizeX.numerator < 1 || op.resizeY.numerator < 1)
    return makeFault(FaultKind::Parse, "RESIZE by n = 0");
  if (op.ifm.storage == Storage::Chained || op.ifm.storage == Storage::None) {
    return makeFault(FaultKind::Parse, "IFM of RESIZE must be in memory");
  }
  // The kernel size registers hold the IFM rows and columns that are read; decoded, they are the IFM's size.
  const int64_t rows = op.ifm.height, columns = op.ifm.width, depth = op.ofm.depth;
  if (Outcome failed = checkLimits(rows * columns * depth, rows * columns * depth * 8)) return failed;
  BoundMap map;
  if (Outcome failed = map.bind(op.ifm, rows, columns, depth, memory, Access::Read, Channel::Ifm, "IFM"))
    return failed;
  planeBytes_.reserve(static_cast<size_t>(rows * columns * depth) * sizeof(int64_t));
  auto* plane = planeBytes_.as<int64_t>();
  for (int64_t y = 0; y < rows; ++y)
    map.readRow(y, 0, columns, op.ifm.zeroPoint, plane + y * columns * depth);

  std::vector<Tap> across;
  for (int64_t x = 0; x < op.ofm.width; ++x) across.push_back(tapOf(x, op.resizeX, columns));
  const int64_t nx = op.resizeX.numerator, ny = op.resizeY.numerator;
  forRange(op.ofm.height, 1, [&](int64_t begin, int64_t end) {
    thread_local std::vector<int64_t> acc;
    thread_local std::vector<std::byte> out;
    acc.resize(static_cast<size_t>(op.ofm.width * depth));
    for (int64_t y = begin; y < end; ++y) {
      const Tap down = tapOf(y, op.resizeY, rows);
      for (int64_t x = 0; x < op.ofm.width; ++x) {
        const Tap& tap = across[static_cast<size_t>(x)];
        const auto at = [&](int64_t row, int64_t column) { return plane + (row * columns + column) * depth; };
        const int64_t *a = at(down.low, tap.low), *b = at(down.low, tap.high), *c = at(down.high, tap.low),
                      *d = at(down.high, tap.high);
        int64_t* to = acc.data() + x * depth;
        // Assumption resize-replicate: REPLICATE uses the lower neighbour.
        const int64_t* pick = a;
        if (op.resize == ResizeMode::Nearest) {
          const bool lower = 2 * down.fraction >= ny, right = 2 * tap.fraction >= nx;
          pick = lower ? (right ? d : c) : (right ? b : a);
        }
        for (int64_t i = 0; i < depth; ++i) {
          int64_t v = pick[i];
          if (op.resize == ResizeMode::Bilinear) {
            v = (a[i] * (nx - tap.fraction) + b[i] * tap.fraction) * (ny - down.fraction) +
                (c[i] * (nx - tap.fraction) + d[i] * tap.fraction) * down.fraction;
          }
          to[i] = v * 65536;
        }
      }
      emit(op, y * op.ofm.width, op.ofm.width, acc.data(), out);
    }
  });
  return std::nullopt;
}

}  // namespace carina::npu::model
