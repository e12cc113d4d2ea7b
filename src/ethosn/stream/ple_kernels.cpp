// SPDX-License-Identifier: Apache-2.0
#include "ethosn/stream/ple_kernels.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace carina::ethosn {
namespace {

struct Block {
  uint8_t width, height, multiplier = 1;
};
constexpr Block kNine[] = {{16, 16}, {8, 32}, {32, 8},   {16, 8},  {16, 8, 2},
                           {8, 16},  {8, 8},  {8, 8, 2}, {8, 8, 4}};
constexpr Block kDownsample[] = {{16, 16},   {8, 32}, {32, 8},   {16, 8},
                                 {16, 8, 2}, {8, 16}, {8, 8, 2}, {8, 8, 4}};
constexpr Block kPool2[] = {{16, 16}, {32, 8}, {16, 8, 2}, {8, 8, 4}};
constexpr Block kPool3[] = {{32, 8}, {16, 8, 2}, {8, 8, 4}};
constexpr Block kTranspose[] = {{8, 8},  {16, 16},  {16, 8},   {8, 16},   {8, 32},
                                {32, 8}, {8, 8, 2}, {8, 8, 4}, {16, 8, 2}};
constexpr Block kLarge[] = {{16, 16}};
constexpr Block kSmall[] = {{8, 8}};
constexpr Block kUnsaid[] = {{0, 0}};

/// The kernels of one family in the order of their ids.
std::vector<PleKernel> listKernels() {
  using enum PleOperation;
  std::vector<PleKernel> list;
  const auto add = [&](PleOperation operation, PleSignedness signedness, std::span<const Block> blocks) {
    for (const Block& block : blocks)
      list.push_back({operation, signedness, block.width, block.height, block.multiplier, PleAxis::None});
  };
  const auto addBoth = [&](PleOperation operation, std::span<const Block> blocks) {
    add(operation, PleSignedness::Unsigned, blocks);
    add(operation, PleSignedness::Signed, blocks);
  };
  addBoth(Addition, kLarge);
  addBoth(AdditionRescale, kLarge);
  addBoth(AvgPool3x3, kUnsaid);
  add(Downsample2x2, PleSignedness::Any, kDownsample);
  add(Interleave2x2, PleSignedness::Any, kLarge);
  addBoth(LeakyRelu, kNine);
  addBoth(MaxPool2x2, kPool2);
  addBoth(MaxPool3x3Even, kPool3);
  addBoth(MaxPool3x3Odd, kPool3);
  addBoth(MeanXy7x7, kSmall);
  addBoth(MeanXy8x8, kSmall);
  add(Passthrough, PleSignedness::Any, kNine);
  addBoth(Sigmoid, kNine);
  add(TransposeXy, PleSignedness::Any, kTranspose);
  for (PleSignedness signedness : {PleSignedness::Unsigned, PleSignedness::Signed}) {
    for (PleAxis axis : {PleAxis::X, PleAxis::Y}) list.push_back({MaxPool1d, signedness, 0, 0, 1, axis});
  }
  addBoth(Multiplication, kUnsaid);
  CARINA_CHECK(list.size() == kPleKernelsPerFamily, "the table has one row per kernel id");
  return list;
}

const std::vector<PleKernel>& kernels() {
  static const std::vector<PleKernel> kList = listKernels();
  return kList;
}

}  // namespace

const char* pleOperationName(PleOperation operation) {
  switch (operation) {
    case PleOperation::Addition:
      return "ADDITION";
    case PleOperation::AdditionRescale:
      return "ADDITION_RESCALE";
    case PleOperation::AvgPool3x3:
      return "AVGPOOL_3X3_1_1";
    case PleOperation::Downsample2x2:
      return "DOWNSAMPLE_2X2";
    case PleOperation::Interleave2x2:
      return "INTERLEAVE_2X2_2_2";
    case PleOperation::LeakyRelu:
      return "LEAKY_RELU";
    case PleOperation::MaxPool2x2:
      return "MAXPOOL_2X2_2_2";
    case PleOperation::MaxPool3x3Even:
      return "MAXPOOL_3X3_2_2_EVEN";
    case PleOperation::MaxPool3x3Odd:
      return "MAXPOOL_3X3_2_2_ODD";
    case PleOperation::MeanXy7x7:
      return "MEAN_XY_7X7";
    case PleOperation::MeanXy8x8:
      return "MEAN_XY_8X8";
    case PleOperation::Passthrough:
      return "PASSTHROUGH";
    case PleOperation::Sigmoid:
      return "SIGMOID";
    case PleOperation::TransposeXy:
      return "TRANSPOSE_XY";
    case PleOperation::MaxPool1d:
      return "MAXPOOL1D";
    case PleOperation::Multiplication:
      return "MULTIPLICATION";
  }
  return "?";
}

std::optional<KernelId> pleKernel(uint16_t id) {
  if (id >= 4 * kPleKernelsPerFamily) return std::nullopt;
  return KernelId{static_cast<PleFamily>(id / kPleKernelsPerFamily), kernels()[id % kPleKernelsPerFamily]};
}

std::optional<uint16_t> pleKernelId(PleFamily family, const PleKernel& kernel) {
  for (uint16_t i = 0; i < kPleKernelsPerFamily; ++i) {
    if (kernels()[i] == kernel)
      return static_cast<uint16_t>(static_cast<uint16_t>(family) * kPleKernelsPerFamily + i);
  }
  return std::nullopt;
}

std::string pleKernelName(uint16_t id) {
  const std::optional<KernelId> known = pleKernel(id);
  if (!known) return fmt::format("unknown kernel {}", id);
  constexpr const char* kFamilies[] = {"V2442", "V4442", "V8222", "V8422"};
  const PleKernel& kernel = known->kernel;
  std::string name =
      fmt::format("{} {}", kFamilies[static_cast<size_t>(known->family)], pleOperationName(kernel.operation));
  if (kernel.blockWidth != 0) name += fmt::format(" {}x{}", kernel.blockWidth, kernel.blockHeight);
  if (kernel.blockMultiplier != 1) name += fmt::format(" x{}", kernel.blockMultiplier);
  if (kernel.axis != PleAxis::None) name += kernel.axis == PleAxis::X ? " x" : " y";
  if (kernel.signedness != PleSignedness::Any)
    name += kernel.signedness == PleSignedness::Signed ? " s8" : " u8";
  return name;
}

}  // namespace carina::ethosn
