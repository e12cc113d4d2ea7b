// SPDX-License-Identifier: Apache-2.0
// Rules of pooling: the PLE has a kernel for each supported window shape.
#include <algorithm>

#include "ethosn/support/rule.hpp"

namespace carina::ethosn::support {
namespace {

constexpr Padding kNoPadding{}, kAfter{0, 1, 0, 1}, kAround{1, 1, 1, 1};

constexpr uint32_t kMaxPool3x3Width = 417;  // limited by PLE RAM

bool isAverage(Context& c) {
  return c.operation().pooling == PoolingType::Average;
}

bool isMax(Context& c, uint32_t stride) {
  return !isAverage(c) && c.operation().stride == Extent{stride, stride};
}

bool isWholeTensor(Context& c) {
  const Operation& op = c.operation();
  return op.padding == kNoPadding && op.window == Extent{c.input().shape[2], c.input().shape[1]};
}

bool averageHasKernel(Context& c) {
  if (!isAverage(c)) return true;
  const Operation& op = c.operation();
  if (isWholeTensor(c)) return op.window.x == op.window.y && (op.window.x == 7 || op.window.x == 8);
  return op.window == Extent{3, 3} && op.stride == Extent{1, 1} && op.padding == kAround;
}

/// Average pooling is split in depth only: SRAM must hold whole planes of input and output, twice if there
/// are several stripes.
bool averageFitsSram(Context& c) {
  if (!isAverage(c) || isWholeTensor(c)) return true;
  const auto rounded = [](uint32_t size) { return (uint64_t{size} + 7) / 8 * 8; };
  const Shape& shape = c.input().shape;
  const auto banks = static_cast<uint64_t>(c.target.variant->banks());
  const uint64_t stripes = shape[3] > banks ? 2 : 1;
  const uint64_t bank = (static_cast<uint64_t>(c.target.sramBytes) + banks - 1) / banks;
  return stripes * 2 * rounded(shape[1]) * rounded(shape[2]) + static_cast<uint64_t>(kPleKernelMaxBytes) <=
         bank;
}

bool strideTwoHasKernel(Context& c) {
  if (!isMax(c, 2)) return true;
  const Operation& op = c.operation();
  if (op.window == Extent{1, 1}) return op.padding == kNoPadding;
  return (op.window == Extent{2, 2} || op.window == Extent{3, 3}) &&
         (op.padding == kNoPadding || op.padding == kAfter);
}

bool bothEven(Context& c) {
  return c.input().shape[1] % 2 == 0 && c.input().shape[2] % 2 == 0;
}

bool bothOdd(Context& c) {
  return c.input().shape[1] % 2 == 1 && c.input().shape[2] % 2 == 1;
}

/// Whether this is max-pooling of stride 2 with the window and padding.
bool isStrideTwo(Context& c, uint32_t window, const Padding& padding) {
  return isMax(c, 2) && c.operation().window == Extent{window, window} && c.operation().padding == padding;
}

bool strideOneFitsKernel(Context& c) {
  if (!isMax(c, 1)) return true;
  const Operation& op = c.operation();
  const uint32_t largest = std::max(op.window.x, op.window.y);
  if (op.padding == kNoPadding && largest <= 9) return true;
  if (largest > 17) return false;
  for (SamePadding mode : {SamePadding::Symmetric, SamePadding::PreferBefore, SamePadding::PreferAfter}) {
    if (op.padding == samePadding(c.input().shape[1], c.input().shape[2], op.window, Extent{}, mode)) {
      return true;
    }
  }
  return false;
}

/// The pooled dimension is not split: SRAM must hold all of it, one brick group across, for input and output.
bool strideOneFitsSram(Context& c) {
  if (!isMax(c, 1)) return true;
  const auto half = static_cast<uint64_t>(c.target.sramBytes - kPleKernelMaxBytes) / 2;
  const uint64_t limit = half / (kBrickEdge * kBrickDepth) / kBrickEdge * kBrickEdge;
  const Operation& op = c.operation();
  const bool fits =
      (op.window.x <= 1 || c.input().shape[2] <= limit) && (op.window.y <= 1 || c.input().shape[1] <= limit);
  return fits || c.says(limit);
}

}  // namespace

Rules poolingRules() {
  const std::string in = "Input to pooling layer";
  return join(
      {batchIsOne(),
       depthFits(in),
       eightBits(in),
       {{kUnsupported,
         [](Context& c) {
           const Operation& op = c.operation();
           return op.window.x != 0 && op.window.y != 0 && op.stride.x != 0 && op.stride.y != 0;
         },
         "Invalid pooling size/stride"}},
       oneInputScale("Pooling"),
       inputZeroPointFits(),
       outputIsExpected(),
       {{kEstimate, averageHasKernel, "Unsupported configuration in AVG pooling"},
        {kEstimate, averageFitsSram,
         "AVG pooling 3x3_1_1: maximum input width x height cannot fit into SRAM"},
        {kEstimate, strideTwoHasKernel, "Unsupported configuration in Max pooling with stride 2"},
        {kEstimate, [](Context& c) { return !isStrideTwo(c, 2, kNoPadding) || bothEven(c); },
         "Max pooling 2x2_2_2 with no padding: input sizes must be even"},
        {kEstimate, [](Context& c) { return !isStrideTwo(c, 2, kAfter) || bothOdd(c); },
         "Max pooling 2x2_2_2 with padding: input sizes must be odd"},
        {kEstimate,
         [](Context& c) {
           return !isMax(c, 2) || c.operation().window.x != 3 || c.input().shape[2] <= kMaxPool3x3Width ||
                  c.says(kMaxPool3x3Width);
         },
         "Max pooling 3x3_2_2: maximum input width ({}) exceeded"},
        {kEstimate, [](Context& c) { return !isStrideTwo(c, 3, kNoPadding) || bothOdd(c); },
         "Max pooling 3x3_2_2 with no padding: input sizes must be odd"},
        {kEstimate, [](Context& c) { return !isStrideTwo(c, 3, kAfter) || bothEven(c); },
         "Max pooling 3x3_2_2 with padding: input sizes must be even"},
        {kEstimate, strideOneFitsKernel,
         "Unsupported pooling size and padding for max pooling with stride 1 - must be VALID with "
         "size <= 9 or SAME with size <= 17"},
        {kEstimate, strideOneFitsSram,
         "Input tensor for max pooling with stride 1 is too large - width and height are limited to {}"},
        {kEstimate, [](Context& c) { return isAverage(c) || isMax(c, 1) || isMax(c, 2); },
         "Unsupported stride for max pooling - must be 1,1 or 2,2"},
        {kEstimate,
         [](Context& c) {
           return isAverage(c) || (c.input().shape[2] >= c.operation().window.x &&
                                   c.input().shape[1] >= c.operation().window.y);
         },
         "Input size must not be smaller than the pooling size"}}});
}

}  // namespace carina::ethosn::support
