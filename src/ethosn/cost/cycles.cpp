// SPDX-License-Identifier: Apache-2.0
#include "ethosn/cost/cycles.hpp"

#include <algorithm>

namespace carina::ethosn {
namespace {

uint64_t unsignedOf(int32_t value) {
  return static_cast<uint64_t>(std::max(value, 0));
}

uint64_t divideUp(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

uint64_t roundUp(uint64_t value, uint64_t step) {
  return divideUp(value, step) * step;
}

uint64_t cyclesPerPatch(PleOperation operation) {
  switch (operation) {
    case PleOperation::Passthrough:
      return 6;
    case PleOperation::Downsample2x2:
      return 10;
    case PleOperation::Interleave2x2:
    case PleOperation::MaxPool2x2:
      return 13;
    case PleOperation::TransposeXy:
      return 14;
    case PleOperation::Addition:
      return 15;
    case PleOperation::AdditionRescale:
      return 35;
    case PleOperation::LeakyRelu:
    case PleOperation::MaxPool3x3Even:
    case PleOperation::MaxPool3x3Odd:
    case PleOperation::MeanXy7x7:
    case PleOperation::MeanXy8x8:
      return 37;
    case PleOperation::MaxPool1d:
      return 40;
    case PleOperation::Sigmoid:
      return 41;
    case PleOperation::AvgPool3x3:
      return 97;
    case PleOperation::Multiplication:
      return 0;
  }
  return 0;
}

uint64_t winogradCycles(const MceWork& work, const FilterWork& filter, uint64_t inputs, uint64_t ofmSteps) {
  const uint64_t kh = unsignedOf(filter.height), kw = unsignedOf(filter.width);
  const uint64_t blockW = kw == 1 ? 4 : 2, blockH = kh == 1 ? 4 : 2;
  const uint64_t blocks =
      divideUp(unsignedOf(work.height), blockH) * divideUp(unsignedOf(work.width), blockW);
  const uint64_t pieces = divideUp(kh, 3) * divideUp(kw, 3);
  const uint64_t channels = unsignedOf(filter.channels);
  const uint64_t products = roundUp(channels, inputs) * blocks * 16 * pieces / (inputs * 8) * ofmSteps;
  const uint64_t transform = 2 * channels * pieces * ofmSteps *
                             divideUp(unsignedOf(work.height), unsignedOf(work.blockHeight)) *
                             divideUp(unsignedOf(work.width), unsignedOf(work.blockWidth));
  return std::max(products, transform);
}

}  // namespace

uint64_t mceCycles(const Variant& variant, const MceWork& work, std::span<const FilterWork> filters) {
  const bool depthwise = work.operation == MceOperation::Depthwise;
  const uint64_t ogs = unsignedOf(depthwise ? variant.igs() : variant.ogs());
  const uint64_t inputs = depthwise ? 1 : unsignedOf(variant.igs());
  const uint64_t outputs = roundUp(unsignedOf(work.outputs), ogs);
  uint64_t cycles = 0;
  for (const FilterWork& filter : filters) {
    if (work.operation == MceOperation::FullyConnected) {
      cycles += roundUp(unsignedOf(filter.channels), 1024) * outputs / (inputs * 8 * ogs);
      continue;
    }
    if (work.winograd) {
      cycles += winogradCycles(work, filter, inputs, outputs / ogs);
      continue;
    }
    const uint64_t channels = depthwise ? 1 : roundUp(unsignedOf(filter.channels), inputs);
    cycles += unsignedOf(filter.height) * unsignedOf(filter.width) * roundUp(unsignedOf(work.height), 4) *
              roundUp(unsignedOf(work.width), 2) * channels * outputs / (inputs * 8 * ogs);
  }
  return cycles;
}

namespace {

/// Whether the PLE processes whole blocks, even where the feature map ends inside one.
bool worksInBlocks(const PleKernel& kernel) {
  const bool adds =
      kernel.operation == PleOperation::Addition || kernel.operation == PleOperation::AdditionRescale;
  return kernel.blockWidth != 0 && !adds;
}

uint64_t channelsPerLane(const Variant& variant, const PleWork& work) {
  return divideUp(unsignedOf(work.channels), unsignedOf(variant.engines) * unsignedOf(variant.pleLanes));
}

}  // namespace

uint64_t plePatches(const Variant& variant, const PleKernel& kernel, const PleWork& work) {
  const bool inBlocks = worksInBlocks(kernel);
  const uint64_t blockW = inBlocks ? kernel.blockWidth : kPatchEdge,
                 blockH = inBlocks ? kernel.blockHeight : kPatchEdge;
  return roundUp(unsignedOf(work.inputHeight), blockH) / kPatchEdge *
         (roundUp(unsignedOf(work.inputWidth), blockW) / kPatchEdge) * channelsPerLane(variant, work);
}

uint64_t pleCycles(const Variant& variant, const PleKernel& kernel, const PleWork& work) {
  uint64_t cycles = plePatches(variant, kernel, work) * cyclesPerPatch(kernel.operation);
  if (worksInBlocks(kernel)) {
    const uint64_t blocks = divideUp(unsignedOf(work.height), uint64_t{kernel.blockHeight}) *
                            divideUp(unsignedOf(work.width), uint64_t{kernel.blockWidth}) *
                            channelsPerLane(variant, work);
    cycles += 10 * blocks + 100 * (blocks / std::max<uint64_t>(kernel.blockMultiplier, 1));
  }
  return cycles;
}

}  // namespace carina::ethosn
