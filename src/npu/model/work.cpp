// SPDX-License-Identifier: Apache-2.0
// Work of operations (work.hpp).
#include "npu/model/work.hpp"

#include <algorithm>

#include "npu/model/executor.hpp"

namespace carina::npu::model {
namespace {

// Steps per operation, element or multiply-accumulate, measured on one core of a 2020s x86 machine and
// rounded up.
constexpr double kOperation = 3000;
constexpr double kOutput = 1, kInput = 0.5, kElementwise = 1.5, kResize = 8, kWeight = 8, kKept = 8,
                 kTurned = 8;
constexpr double kDotProduct = 1.0 / 16, kWideDotProduct = 1.0 / 4, kDepthwise = 1.0 / 4, kExact = 1,
                 kPool = 0.5;
constexpr double kRun = 32, kByte = 1.0 / 8;

int64_t cut(double steps) {
  return static_cast<int64_t>(std::min(steps, 4.6e18));
}

double elements(const FeatureMap& map) {
  return static_cast<double>(map.height) * map.width * map.depth;
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
    case OperationKind::Conv: {
      const double volume = taps * op.ifm.depth;
      const double mac = !fitsInt16(op.ifm)               ? kExact
                         : elementBytes(op.ifm.type) == 1 ? kDotProduct
                                                          : kWideDotProduct;
      steps += out * volume * mac + volume * op.ofm.depth * kWeight;
      break;
    }
    case OperationKind::Depthwise:
      steps += out * taps * (fitsInt16(op.ifm) ? kDepthwise : kExact) + taps * op.ofm.depth * kWeight;
      break;
    case OperationKind::Pool:
      steps += out * taps * (op.pool == PoolMode::ReduceSum ? op.ifm.depth : 1) * kPool;
      break;
    case OperationKind::Elementwise:
      steps += out * kElementwise;
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
