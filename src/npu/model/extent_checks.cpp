// SPDX-License-Identifier: Apache-2.0
// Consistency of shapes, strides and padding of one operation (extent_checks.hpp).
#include "npu/model/extent_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace carina::npu::model {
namespace {

/// Maps with more elements than this are checked by their strides alone.
constexpr int64_t kMaxAddresses = int64_t{1} << 20;

/// Positions along one axis whose window is entirely before, or entirely after, the map.
struct OutsideWindows {
  int64_t before = 0, after = 0;
};
OutsideWindows outsideWindows(int64_t positions, int64_t stride, int64_t span, int64_t padding,
                              int64_t size) {
  OutsideWindows outside;
  // Window i is [i * stride - padding, i * stride - padding + span).
  if (padding >= span) outside.before = std::min(positions, (padding - span) / stride + 1);
  const int64_t firstBehind = (size + padding + stride - 1) / stride;
  outside.after = std::max<int64_t>(positions - firstBehind, 0);
  return outside;
}

/// One axis of a map in memory: number of elements and the distance between them.
struct Axis {
  int64_t count = 1, stride = 0;
};

/// Whether two elements overlap in memory.
bool elementsMeet(std::vector<Axis> axes, int64_t unit) {
  axes.erase(std::remove_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.count <= 1; }),
             axes.end());
  for (Axis& axis : axes) axis.stride = std::abs(axis.stride);
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int64_t extent = unit, elements = 1;
  bool nested = true;
  for (const Axis& axis : axes) {
    nested = nested && axis.stride >= extent;
    extent += (axis.count - 1) * axis.stride;
    elements *= axis.count;
    if (elements > kMaxAddresses) return !nested;
  }
  if (nested) return false;
  // Rows may interleave without overlapping: compare the addresses.
  std::vector<int64_t> addresses{0};
  for (const Axis& axis : axes) {
    std::vector<int64_t> next;
    next.reserve(addresses.size() * static_cast<size_t>(axis.count));
    for (int64_t i = 0; i < axis.count; ++i) {
      for (const int64_t address : addresses) next.push_back(address + i * axis.stride);
    }
    addresses = std::move(next);
  }
  std::sort(addresses.begin(), addresses.end());
  return std::adjacent_find(addresses.begin(), addresses.end(),
                            [&](int64_t a, int64_t b) { return b - a < unit; }) != addresses.end();
}

bool writesTwice(const FeatureMap& map, MapAxes axes) {
  const int64_t bytes = elementBytes(map.type);
  const Axis rows{std::min<int64_t>(axes.h, map.height0), map.strideY};
  const Axis columns{std::min<int64_t>(axes.w, map.width0), map.strideX};
  if (map.layout == Layout::NHWC) return elementsMeet({rows, columns, {axes.c, bytes}}, bytes);
  const int64_t brick = std::min<int64_t>(axes.c, 16) * bytes;
  return elementsMeet({rows, columns, {(axes.c + 15) / 16, map.strideC}}, brick);
}

/// Whether rows after the tile split are rows of the first tile again.
bool rowsRepeat(const FeatureMap& map, MapAxes axes) {
  const int64_t rows = axes.h - map.height0;
  if (rows <= 0 || map.storage != Storage::Tiles2x2 || map.strideY == 0) return false;
  const int64_t distance = static_cast<int64_t>(map.base[2]) - static_cast<int64_t>(map.base[0]);
  if (distance % map.strideY != 0) return false;
  const int64_t steps = distance / map.strideY;  // row j of tile 2 is row j + steps of tile 0
  return steps < map.height0 && steps + rows > 0;
}

/// The OFM as one row, if rows overlap and both copies of an element have the same value: a pointwise
/// convolution whose IFM overlaps in the same positions.
std::optional<MapAxes> asOneRow(const KernelOperation& op) {
  const bool pointwise = op.kind == OperationKind::Conv && op.kernel.height == 1 && op.kernel.width == 1 &&
                         op.kernel.strideY == 1 && op.kernel.strideX == 1 && !op.padding.any() &&
                         op.upscale == Upscale::None && op.transpose == Transpose::HWC &&
                         op.reverse == Reverse::None && op.accumulatorInput == AccumulatorInput::Reset;
  if (!pointwise || !rowsOverlap(op.ofm) || !rowsOverlap(op.ifm)) return std::nullopt;
  for (const FeatureMap* map : {&op.ifm, &op.ofm}) {
    if (map->height0 < op.ofm.height || map->width0 < op.ofm.width || map->strideY % map->strideX != 0)
      return std::nullopt;
  }
  const int64_t step = op.ofm.strideY / op.ofm.strideX;
  if (op.ifm.strideY / op.ifm.strideX != step) return std::nullopt;
  return MapAxes{1, step * (op.ofm.height - 1) + op.ofm.width, op.ofm.depth};
}

}  // namespace

MapAxes ofmAxes(const KernelOperation& op) {
  const int64_t h = op.ofm.height, w = op.ofm.width, c = op.ofm.depth;
  switch (op.transpose) {
    case Transpose::HWC:
      return {h, w, c};
    case Transpose::WHC:
      return {w, h, c};
    case Transpose::HCW:
      return {h, c, w};
    case Transpose::WCH:
      return {w, c, h};
    case Transpose::CHW:
      return {c, h, w};
    case Transpose::CWH:
      return {c, w, h};
  }
  return {h, w, c};
}

std::vector<std::string> paddingFindings(const KernelOperation& op) {
  std::vector<std::string> found;
  if (op.kind == OperationKind::Elementwise || op.kind == OperationKind::Resize || !op.padding.any())
    return found;
  const auto judge = [&](const char* what, OutsideWindows outside, int64_t positions, const char* before,
                         int32_t padBefore, const char* after, int32_t padAfter, int32_t span) {
    if (std::abs(outside.after - outside.before) * 2 <= positions) return;
    const bool behind = outside.after > outside.before;
    found.push_back(
        fmt::format("{} of {} {} of windows lie entirely in the padding: PAD_{} is {}, the kernel {}",
                    std::max(outside.after, outside.before), positions, what, behind ? after : before,
                    behind ? padAfter : padBefore, span));
  };
  const Kernel& kernel = op.kernel;
  judge("rows",
        outsideWindows(op.ofm.height, kernel.strideY, kernel.dilatedHeight(), op.padding.top, op.ifmHeight()),
        op.ofm.height, "TOP", op.padding.top, "BOTTOM", op.padding.bottom, kernel.dilatedHeight());
  judge("columns",
        outsideWindows(op.ofm.width, kernel.strideX, kernel.dilatedWidth(), op.padding.left, op.ifmWidth()),
        op.ofm.width, "LEFT", op.padding.left, "RIGHT", op.padding.right, kernel.dilatedWidth());
  return found;
}

std::vector<std::string> extentFindings(const KernelOperation& op) {
  std::vector<std::string> found;
  const auto text = [](const char* what, MapAxes axes, const FeatureMap& map) {
    return fmt::format("{} of {}x{}x{} with strides Y {}, X {}{}", what, axes.h, axes.w, axes.c, map.strideY,
                       map.strideX,
                       map.layout == Layout::NHCWB16 ? fmt::format(", C {}", map.strideC) : std::string());
  };
  const auto rows = [&](const FeatureMap& map, MapAxes axes, const char* what) {
    if (!inMemory(map) || !rowsRepeat(map, axes)) return;
    found.push_back(fmt::format(
        "{}: tile 0 ends after {} rows, and the rows after it, in tile 2, are rows of tile 0 again",
        text(what, axes, map), map.height0));
  };
  if (!(op.kind == OperationKind::Pool && op.pool == PoolMode::None))
    rows(op.ifm, {op.ifm.height, op.ifm.width, op.ifm.depth}, "IFM");
  const bool readsIfm2 =
      op.ifm2 && (op.kind == OperationKind::Elementwise
                      ? !isUnary(op.elementwise.mode)
                      : op.weightsFromIfm2 || op.accumulatorInput == AccumulatorInput::Ifm2);
  if (readsIfm2) rows(*op.ifm2, {op.ifm2->height, op.ifm2->width, op.ifm2->depth}, "IFM2");
  if (op.accumulatorOutput && inMemory(op.ofm)) {
    const MapAxes axes = ofmAxes(op);
    rows(op.ofm, axes, "OFM");
    FeatureMap written = op.ofm;
    const auto row = asOneRow(op);
    if (row) written.width0 = static_cast<int32_t>(row->w);
    if (writesTwice(written, row.value_or(axes)))
      found.push_back(fmt::format("{} puts two elements at the same address", text("OFM", axes, op.ofm)));
  }
  return found;
}

}  // namespace carina::npu::model
