// SPDX-License-Identifier: Apache-2.0
// Work of operations (work.hpp).
#include "npu/model/work.hpp"

#include <algorithm>
#include <cmath>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

// Steps per operation, element or multiply-accumulate, measured on one core of a 2020s x86 machine with AVX2
// and rounded up (`npu_model_bench --benchmark_filter=steps`). Dot products are of whole vectors of channels
// and of pairs of inputs.
constexpr double kOperation = 3000;
constexpr double kOutput = 1, kInput = 0.5, kElementwise = 1.5, kShift = 3, kWide = 12, kPixel = 8,
                 kResize = 8, kWeight = 8, kKept = 8, kTurned = 8;
constexpr double kDotProduct = 1.0 / 64, kWideDotProduct = 1.0 / 8, kLane = 0.25, kDepthwise = 1.0 / 8,
                 kExact = 1, kPool = 0.6;
constexpr int kLanes = 16;
constexpr double kRun = 32, kByte = 1.0 / 8;

int64_t cut(double steps) {
  return static_cast<int64_t>(std::min(steps, 4.6e18));
}

double elements(const FeatureMap& map) {
  return static_cast<double>(map.height) * map.width * map.depth;
}

double positions(const FeatureMap& map) {
  return static_cast<double>(map.height) * map.width;
}

double convolution(const KernelOperation& op) {
  const double taps = static_cast<double>(op.kernel.height) * op.kernel.width;
  if (!fitsInt16(op.ifm)) return elements(op.ofm) * taps * op.ifm.depth * kExact;
  // Without dilation a row of the window is one run of pairs.
  const bool rows = op.kernel.dilationX == 1;
  const double runs = rows ? op.kernel.height : taps;
  const double run = static_cast<double>(op.ifm.depth) * (rows ? op.kernel.width : 1);
  const double lanes = std::ceil(static_cast<double>(op.ofm.depth) / kLanes) * kLanes;
  const double price = elementBytes(op.ifm.type) == 1 ? kDotProduct : kWideDotProduct;
  return positions(op.ofm) * lanes * (runs * 2 * std::ceil(run / 2) * price + kLane);
}

double depthwise(const KernelOperation& op) {
  const double taps = static_cast<double>(op.kernel.height) * op.kernel.width;
  if (!fitsInt16(op.ifm)) return elements(op.ofm) * taps * kExact;
  const int rest = op.ofm.depth % kLanes;  // channels that do not fill a vector
  return positions(op.ofm) * taps * ((op.ofm.depth - rest) * kDepthwise + rest * kExact);
}

}  // namespace

int64_t workOf(const KernelOperation& op) {
  const double out = elements(op.ofm), in = elements(op.ifm) * (op.upscale == Upscale::None ? 1 : 4);
  const double taps = static_cast<double>(op.kernel.height) * op.kernel.width;
  double steps = kOperation + out * kOutput + in * kInput;
  const bool keeps = !op.accumulatorOutput || op.accumulatorInput != AccumulatorInput::Reset ||
                     op.ofm.storage == Storage::Chained;
  if (keeps) steps += out * kKept;
  if (op.transpose != Transpose::HWC || op.reverse != Reverse::None) steps += out * kTurned;
  switch (op.kind) {
    case OperationKind::Conv:
      steps += convolution(op) + taps * op.ifm.depth * op.ofm.depth * kWeight;
      break;
    case OperationKind::Depthwise:
      steps += depthwise(op) + taps * op.ofm.depth * kWeight;
      break;
    case OperationKind::Pool:
      steps += out * taps * (op.pool == PoolMode::ReduceSum ? op.ifm.depth : 1) * kPool;
      break;
    case OperationKind::Elementwise:
      steps +=
          positions(op.ofm) * kPixel + out * (elementBytes(op.ofm.type) >= 4                ? kWide
                                              : op.elementwise.mode == ElementwiseMode::Shr ? kShift
                                                                                            : kElementwise);
      break;
    case OperationKind::Resize:
      steps += out * kResize;
      break;
  }
  return cut(steps);
}

int64_t workOf(const DmaOperation& op) {
  const double runs = static_cast<double>(std::max(op.size0, 1)) * std::max(op.size1, 1);
  return cut(kOperation + runs * (kRun + static_cast<double>(op.length) * kByte));
}

}  // namespace carina::npu::model
