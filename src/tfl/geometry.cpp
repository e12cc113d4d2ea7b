// SPDX-License-Identifier: Apache-2.0
#include "tfl/geometry.hpp"

#include <algorithm>

namespace carina::tfl {

namespace {

constexpr int64_t kMaxEntries = 4096;

bool fits32(int64_t value) {
  return value >= INT32_MIN && value <= INT32_MAX;
}

}  // namespace

Result<ir::Ints> constantInts(const ir::Value* value, std::string_view what) {
  if (!value->isConstant()) {
    return fail(Code::DependsOnValues, "its {} are computed at run time", what)
        .withRemedy("export the network with static shapes, so that they are constants");
  }
  const bool whole = value->dtype() == DType::Int32 || value->dtype() == DType::Int64;
  if (!whole || value->rank() > 2 || value->numElements() > kMaxEntries)
    return fail(Code::InvalidOperator, "its {} are {}, expected a list of integers", what,
                ir::typeText(value->type));
  ir::Ints values;
  for (int64_t i = 0; i < value->numElements(); ++i) {
    values.push_back(value->constant().integerAt(i));
    if (!fits32(values.back()))
      return fail(Code::InvalidOperator, "its {} hold {}, which exceeds 32 bits", what, values.back());
  }
  return values;
}

Result<int64_t> axisOf(int64_t axis, int64_t rank) {
  const auto normal = normalizeDim(axis, rank);
  if (!normal || rank == 0)
    return fail(Code::InvalidOperator, "axis {} does not exist in {} dimensions", axis, rank);
  return *normal;
}

Result<ir::Ints> axesOf(const ir::Ints& axes, int64_t rank) {
  ir::Ints result;
  for (int64_t axis : axes) {
    CARINA_TRY(const int64_t normal, axisOf(axis, rank));
    if (std::find(result.begin(), result.end(), normal) == result.end()) result.push_back(normal);
  }
  return result;
}

Result<WindowAxis> windowAxis(Padding padding, int64_t size, int64_t kernel, int64_t stride,
                              int64_t dilation) {
  for (int64_t value : {size, kernel, stride, dilation}) {
    if (value < 1 || value > (int64_t{1} << 24))
      return fail(Code::InvalidOperator,
                  "a window of {} with stride {} and dilation {} over {} elements is not possible", kernel,
                  stride, dilation, size);
  }
  const int64_t extent = (kernel - 1) * dilation + 1;
  WindowAxis axis;
  if (padding == Padding::SAME) {
    axis.outputs = (size + stride - 1) / stride;
    const int64_t missing = (axis.outputs - 1) * stride + extent - size;
    axis.before = std::max<int64_t>(missing, 0) / 2;
    axis.after = missing - axis.before;
  } else {
    if (size < extent)
      return fail(Code::InvalidOperator, "a window of {} does not fit {} positions", extent, size);
    axis.outputs = (size - extent) / stride + 1;
    axis.after = (axis.outputs - 1) * stride + extent - size;
  }
  return axis;
}

namespace {

/// The element at `index` of a dimension, clamped to where iteration in that direction can start or stop.
int64_t clampedIndex(int64_t index, int64_t size, bool forward) {
  if (index < 0) index += size;
  return forward ? std::clamp<int64_t>(index, 0, size) : std::clamp<int64_t>(index, -1, size - 1);
}

bool hasBit(int64_t mask, size_t i) {
  return i < 31 && (mask >> i & 1) != 0;
}

}  // namespace

Result<StridedRanges> stridedRanges(const StridedSlice& op) {
  CARINA_TRY(const ir::Ints begin, constantInts(op.begin(), "begins"));
  CARINA_TRY(const ir::Ints end, constantInts(op.end(), "ends"));
  CARINA_TRY(const ir::Ints strides, constantInts(op.strides(), "strides"));
  const Shape& shape = op.input()->shape();
  const size_t rank = shape.size(), entries = begin.size();
  if (end.size() != entries || strides.size() != entries)
    return fail(Code::InvalidOperator, "{} begins, {} ends and {} strides do not match", entries, end.size(),
                strides.size());
  size_t added = 0, ellipses = 0;
  for (size_t i = 0; i < entries; ++i) {
    ellipses += hasBit(op.ellipsisMask(), i);
    added += hasBit(op.newAxisMask(), i) && !hasBit(op.ellipsisMask(), i);
  }
  if (ellipses > 1 || entries - added - ellipses > rank)
    return fail(Code::InvalidOperator, "{} entries do not match a tensor of {} dimensions", entries, rank);
  StridedRanges result;
  for (size_t i = 0; i < entries; ++i) {
    if (hasBit(op.ellipsisMask(), i)) {
      for (size_t left = rank - (entries - added - 1); left > 0; --left) {
        const int64_t size = shape[result.ranges.size()];
        result.ranges.push_back({0, size, 1});
        result.shape.push_back(size);
      }
      continue;
    }
    if (hasBit(op.newAxisMask(), i)) {
      result.shape.push_back(1);
      continue;
    }
    const int64_t size = shape[result.ranges.size()], step = strides[i];
    if (step == 0) return fail(Code::InvalidOperator, "the stride of entry {} is 0", i);
    if (hasBit(op.shrinkAxisMask(), i)) {
      const int64_t at = begin[i] < 0 ? begin[i] + size : begin[i];
      if (at < 0 || at >= size || hasBit(op.beginMask(), i))
        return fail(Code::InvalidOperator, "index {} is out of range for a dimension of size {}", begin[i],
                    size);
      result.ranges.push_back({at, 1, 1});
      continue;
    }
    const bool forward = step > 0;
    const int64_t last = op.offset() ? begin[i] + end[i] : end[i];
    const int64_t from =
        hasBit(op.beginMask(), i) ? (forward ? 0 : size - 1) : clampedIndex(begin[i], size, forward);
    const int64_t to = hasBit(op.endMask(), i) ? (forward ? size : -1) : clampedIndex(last, size, forward);
    const int64_t span = forward ? to - from : from - to, by = forward ? step : -step;
    const int64_t count = span > 0 ? (span + by - 1) / by : 0;
    if (count == 0)
      return fail(Code::InvalidOperator, "no elements are left in dimension {}", result.ranges.size());
    result.ranges.push_back({from, count, step});
    result.shape.push_back(count);
  }
  while (result.ranges.size() < rank) {
    const int64_t size = shape[result.ranges.size()];
    result.ranges.push_back({0, size, 1});
    result.shape.push_back(size);
  }
  return result;
}

Result<ir::Ints> paddingsOf(const ir::Value* paddings, const Shape& shape) {
  CARINA_TRY(ir::Ints values, constantInts(paddings, "paddings"));
  if (values.size() != 2 * shape.size())
    return fail(Code::InvalidOperator, "{} paddings do not match {} dimensions", values.size(), shape.size());
  for (int64_t value : values) {
    if (value < 0) return fail(Code::InvalidOperator, "the padding {} is negative", value);
  }
  return values;
}

Result<ir::Ints> splitSizes(const SplitV& op) {
  CARINA_TRY(ir::Ints sizes, constantInts(op.sizes(), "sizes"));
  CARINA_TRY(const ir::Ints axes, constantInts(op.axis(), "axes"));
  if (axes.size() != 1) return fail(Code::InvalidOperator, "expected one axis to split, got {}", axes.size());
  CARINA_TRY(const int64_t axis, axisOf(axes[0], op.input()->rank()));
  int64_t left = op.input()->dim(axis);
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    if (size == -1 && !open) {
      open = &size;
    } else if (size < 1) {
      return fail(Code::InvalidOperator, "a part cannot have {} elements", size);
    } else {
      left -= size;
    }
  }
  if (open) *open = left;
  if (open ? left < 1 : left != 0)
    return fail(Code::InvalidOperator, "the parts do not add up to {}", op.input()->dim(axis));
  return sizes;
}

}  // namespace carina::tfl
