// SPDX-License-Identifier: Apache-2.0
// Pooling: maximum and average windows, fixed and adaptive, in 1 to 3 dimensions (treated as 3, with leading
// sizes of 1).
#include <algorithm>
#include <array>

#include "aten/geometry.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

using Triple = std::array<int64_t, 3>;

/// The last `spatial` sizes, padded in front.
Triple triple(const ir::Ints& values, size_t spatial, int64_t filler) {
  Triple result{filler, filler, filler};
  for (size_t i = 0; i < spatial; ++i) result[3 - spatial + i] = values[values.size() - spatial + i];
  return result;
}

/// The elements of one dimension that one output covers.
struct Range {
  int64_t begin, end, step;
  int64_t padded;  // window length including padding, for averages
};
using Ranges = std::array<std::vector<Range>, 3>;

struct PoolPlan {
  Triple in{}, out{};
  Ranges ranges;
  bool countIncludePad = true;
  std::optional<int64_t> divisor;
};

PoolPlan fixedPlan(const PoolGeometry& g, const Shape& input) {
  PoolPlan plan;
  plan.in = triple(input, g.spatial, 1);
  plan.out = triple(g.output, g.spatial, 1);
  plan.countIncludePad = g.countIncludePad;
  plan.divisor = g.divisor;
  const Triple kernel = triple(g.kernel, g.spatial, 1), stride = triple(g.stride, g.spatial, 1),
               padding = triple(g.padding, g.spatial, 0), dilation = triple(g.dilation, g.spatial, 1);
  for (size_t d = 0; d < 3; ++d) {
    for (int64_t o = 0; o < plan.out[d]; ++o) {
      const int64_t start = o * stride[d] - padding[d];
      const int64_t stop = start + (kernel[d] - 1) * dilation[d] + 1;
      Range range{start, std::min(stop, plan.in[d]), dilation[d],
                  std::min(stop, plan.in[d] + padding[d]) - start};
      if (range.begin < 0) range.begin += ceilDiv(-range.begin, dilation[d]) * dilation[d];
      plan.ranges[d].push_back(range);
    }
  }
  return plan;
}

PoolPlan adaptivePlan(const Shape& input, const Shape& output, size_t spatial) {
  PoolPlan plan;
  plan.in = triple(input, spatial, 1);
  plan.out = triple(output, spatial, 1);
  plan.countIncludePad = false;
  for (size_t d = 0; d < 3; ++d) {
    for (int64_t o = 0; o < plan.out[d]; ++o) {
      const int64_t begin = o * plan.in[d] / plan.out[d], end = ceilDiv((o + 1) * plan.in[d], plan.out[d]);
      plan.ranges[d].push_back({begin, end, 1, end - begin});
    }
  }
  return plan;
}

/// Calls body(plane, z range, y range, x range, output index) for every output element.
template <typename Body>
void forWindows(const PoolPlan& plan, int64_t planes, Body&& body) {
  int64_t at = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (const Range& z : plan.ranges[0]) {
      for (const Range& y : plan.ranges[1]) {
        for (const Range& x : plan.ranges[2]) body(plane, z, y, x, at++);
      }
    }
  }
}

int64_t planeSize(const PoolPlan& plan) {
  return plan.in[0] * plan.in[1] * plan.in[2];
}

/// Maximum and optionally its index in the plane: the first of equal elements; NaN exceeds all values.
Kernel maxKernel(PoolPlan plan, bool withIndices) {
  return [plan = std::move(plan), withIndices](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate(0).mutableAs<T>().data();
      int64_t* indices = withIndices ? call.allocate(1).mutableAs<int64_t>().data() : nullptr;
      const int64_t size = planeSize(plan), planes = size ? input.numElements() / size : 0;
      forWindows(plan, planes,
                 [&](int64_t plane, const Range& zs, const Range& ys, const Range& xs, int64_t at) {
                   const T* base = in + plane * size;
                   T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                 : std::numeric_limits<T>::lowest();
                   int64_t where = (zs.begin * plan.in[1] + ys.begin) * plan.in[2] + xs.begin;
                   for (int64_t z = zs.begin; z < zs.end; z += zs.step) {
                     for (int64_t y = ys.begin; y < ys.end; y += ys.step) {
                       const int64_t row = (z * plan.in[1] + y) * plan.in[2];
                       for (int64_t x = xs.begin; x < xs.end; x += xs.step) {
                         const T value = base[row + x];
                         if (value > best || (isNan(value) && !isNan(best))) {
                           best = value;
                           where = row + x;
                         }
                       }
                     }
                   }
                   out[at] = best;
                   if (indices) indices[at] = where;
                 });
      return {};
    });
  };
}

Kernel averageKernel(PoolPlan plan) {
  return [plan = std::move(plan)](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate(0).mutableAs<T>().data();
      const int64_t size = planeSize(plan), planes = size ? input.numElements() / size : 0;
      forWindows(plan, planes,
                 [&](int64_t plane, const Range& zs, const Range& ys, const Range& xs, int64_t at) {
                   const T* base = in + plane * size;
                   double sum = 0;
                   for (int64_t z = zs.begin; z < zs.end; ++z) {
                     for (int64_t y = ys.begin; y < ys.end; ++y) {
                       const T* row = base + (z * plan.in[1] + y) * plan.in[2];
                       for (int64_t x = xs.begin; x < xs.end; ++x) sum += static_cast<double>(row[x]);
                     }
                   }
                   const int64_t inside = (zs.end - zs.begin) * (ys.end - ys.begin) * (xs.end - xs.begin);
                   const int64_t count = plan.divisor           ? *plan.divisor
                                         : plan.countIncludePad ? zs.padded * ys.padded * xs.padded
                                                                : inside;
                   out[at] = static_cast<T>(sum / static_cast<double>(count));
                 });
      return {};
    });
  };
}

Result<Kernel> prepareMaxPool(const ir::Node& node) {
  CARINA_TRY(const PoolGeometry geometry, poolGeometry(node));
  return maxKernel(fixedPlan(geometry, node.operand(0)->shape()), node.results().size() == 2);
}
Result<Kernel> prepareAvgPool(const ir::Node& node) {
  CARINA_TRY(const PoolGeometry geometry, poolGeometry(node));
  return averageKernel(fixedPlan(geometry, node.operand(0)->shape()));
}

size_t spatialOf(const ir::Node& node) {
  return node.opName().find("1d") != std::string_view::npos   ? 1
         : node.opName().find("3d") != std::string_view::npos ? 3
                                                              : 2;
}
Result<Kernel> prepareAdaptiveAvg(const ir::Node& node) {
  return averageKernel(adaptivePlan(node.operand(0)->shape(), node.result()->shape(), spatialOf(node)));
}
Result<Kernel> prepareAdaptiveMax(const ir::Node& node) {
  return maxKernel(adaptivePlan(node.operand(0)->shape(), node.result()->shape(), spatialOf(node)), true);
}

constexpr KernelEntry kPoolKernels[] = {
    {"aten.max_pool1d.default", prepareMaxPool},
    {"aten.max_pool2d.default", prepareMaxPool},
    {"aten.max_pool3d.default", prepareMaxPool},
    {"aten.max_pool2d_with_indices.default", prepareMaxPool},
    {"aten.max_pool3d_with_indices.default", prepareMaxPool},
    {"aten.avg_pool1d.default", prepareAvgPool},
    {"aten.avg_pool2d.default", prepareAvgPool},
    {"aten.avg_pool3d.default", prepareAvgPool},
    {"aten.adaptive_avg_pool1d.default", prepareAdaptiveAvg},
    {"aten.adaptive_avg_pool2d.default", prepareAdaptiveAvg},
    {"aten.adaptive_avg_pool3d.default", prepareAdaptiveAvg},
    {"aten._adaptive_avg_pool2d.default", prepareAdaptiveAvg},
    {"aten._adaptive_avg_pool3d.default", prepareAdaptiveAvg},
    {"aten.adaptive_max_pool1d.default", prepareAdaptiveMax},
    {"aten.adaptive_max_pool2d.default", prepareAdaptiveMax},
    {"aten.adaptive_max_pool3d.default", prepareAdaptiveMax},
};

}  // namespace

std::span<const KernelEntry> poolKernels() {
  return kPoolKernels;
}

}  // namespace carina::aten
