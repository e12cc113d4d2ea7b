// SPDX-License-Identifier: Apache-2.0
// Register words of the MCE, and parameters of PLE kernels, for a stripe.
#include <algorithm>

#include "ethosn/compiler/emit.hpp"

namespace carina::ethosn::compiler {
namespace {

/// Whether the filter is processed in pieces: by Winograd's algorithm above 3x3, by the direct one above 7x7.
bool isWide(const LayerWeights& layer) {
  const int32_t largest = layer.algorithm == MceAlgorithm::Winograd ? 3 : 7;
  return std::max(layer.height, layer.width) > largest;
}

int32_t thirds(int32_t size) {
  return size == 1 ? 1 : roundUp(size, 3);
}

}  // namespace

/// Input channels that the MCE accumulates over in one stripe.
int32_t partChannels(const Pass& pass, const Plan& plan, int32_t part) {
  if (plan.iterations == 1) return pass.inputChannels;
  return std::min(plan.iterationChannels, pass.inputChannels - part * plan.iterationChannels);
}

MceScheduler Emitter::mceAgent() const {
  const LayerWeights& layer = now_->pass->weights;
  const FeatureMap& in = now_->pass->inputs[0];
  const bool vector = layer.operation == MceOperation::FullyConnected;
  MceScheduler out;
  out.operation = layer.operation;
  out.pleKernel = now_->kernel;
  out.activationConfig = activation_config::kMin.of(now_->pass->activationMin) |
                         activation_config::kMax.of(now_->pass->activationMax);
  const bool wide = isWide(layer);
  const filter::Mode mode = vector                                       ? filter::Mode::VectorProduct
                            : layer.operation == MceOperation::Depthwise ? filter::Mode::Depthwise
                                                                         : filter::Mode::FilterNxM;
  out.filter = filter::kMode.of(static_cast<int64_t>(mode));
  if (wide) {
    out.wideKernelControl = wide_kernel_control::kEnable.of(1) |
                            wide_kernel_control::kWidth.of(thirds(layer.width)) |
                            wide_kernel_control::kHeight.of(thirds(layer.height));
  } else if (!vector) {
    const std::vector<SubFilter> subs = subFilters(layer);
    for (size_t i = 0; i < 4; ++i) {
      const SubFilter& sub = subs[std::min(i, subs.size() - 1)];
      // A sub-filter that the stride leaves without weights becomes a single zero.
      const bool there = sub.height > 0 && sub.width > 0;
      const bool winograd = layer.algorithm == MceAlgorithm::Winograd;
      const int32_t width = winograd ? thirds(sub.width) : sub.width;
      const int32_t height = winograd ? thirds(sub.height) : sub.height;
      out.filter |= filter::kWidth[i].of(there ? width : 1) | filter::kHeight[i].of(there ? height : 1);
    }
  }
  out.ifmZeroPoint = static_cast<uint8_t>(in.zeroPoint);
  const int32_t slotRows =
      now_->plan->inputRowStripes > 1 ? now_->plan->rows / now_->pass->upscale() : in.height;
  const bool packed = now_->plan->columns > 0;
  const int32_t slotWidth = packed ? packedWidth(*now_->plan) : roundUp(in.width, 8),
                slotHeight = packed ? packedHeight(*now_->plan, in) : roundUp(slotRows, 8);
  out.ifmDefaultSlotSize = ifm_default_slot_size::kWidth.of(vector ? 8 : slotWidth) |
                           ifm_default_slot_size::kHeight.of(vector ? 8 : slotHeight);
  out.ifmSlotStride = sram_address::kBytes.of(now_->plan->inputs[0].slotBytes);
  out.stripeBlockConfig = stripe_block_config::kWidth.of(now_->plan->kernel.blockWidth) |
                          stripe_block_config::kHeight.of(now_->plan->kernel.blockHeight);
  out.depthwiseControl = depthwise_control::kIfmsPerOfm.of(layer.strideX * layer.strideY);
  out.ifmSlotBaseAddress = sram_address::kBytes.of(now_->plan->inputs[0].address);
  const int32_t block = now_->plan->kernel.blockWidth * now_->plan->kernel.blockHeight;
  out.pleMceifConfig =
      ple_mceif_config::kBuffers.of(1024 / block) | ple_mceif_config::kBufferWords.of(block / 16);
  return out;
}

/// Padding, and the extent of valid data to the right and below.
void Emitter::programFilter(const Stripe& stripe, ProgramMceStripe& out) const {
  const LayerWeights& layer = now_->pass->weights;
  const FeatureMap& in = now_->pass->inputs[0];
  const auto igs = static_cast<size_t>(variant_.igsPerEngine);
  if (layer.operation == MceOperation::FullyConnected) {
    for (size_t ig = 0; ig < igs; ++ig) {
      out.ifmPad[ig] = ifm_pad::kDeltaWidth.of(3) | ifm_pad::kDeltaHeight.of(3);
    }
    return;
  }
  const std::vector<SubFilter> subs = subFilters(layer);
  const bool strided = subs.size() > 1;
  for (size_t i = 0; i < subs.size(); ++i) {
    // With an odd size, the second sub-map of a direction is one shorter; the whole map has ceil(size / 2).
    int32_t height = in.height * now_->pass->upscale(), width = in.width * now_->pass->upscale();
    // Without a filter's reach, valid data ends with the resized map.
    if (now_->pass->resampling != Resampling::None && now_->pass->resampling != Resampling::Transpose) {
      height = now_->pass->mceHeight;
      width = now_->pass->mceWidth;
    }
    if (strided) {
      height -= i / 2 == 1 && now_->pass->oddHeight ? 1 : 0;
      width -= i % 2 == 1 && now_->pass->oddWidth ? 1 : 0;
    }
    const int32_t deltaH = std::min(15, height - stripe.y - stripe.height),
                  deltaW = std::min(15, width - stripe.x - stripe.width);
    if (isWide(layer)) {
      out.wideKernelOffset = wide_kernel_offset::kWidth.of(now_->pass->subLeft[i]) |
                             wide_kernel_offset::kHeight.of(now_->pass->subTop[i]) |
                             wide_kernel_offset::kDeltaWidth.of(deltaW) |
                             wide_kernel_offset::kDeltaHeight.of(deltaH);
      continue;
    }
    for (size_t ig = 0; ig < igs; ++ig) {
      out.ifmPad[4 * i + ig] = ifm_pad::kLeft.of(now_->pass->subLeft[i]) |
                               ifm_pad::kTop.of(now_->pass->subTop[i]) | ifm_pad::kDeltaWidth.of(deltaW) |
                               ifm_pad::kDeltaHeight.of(deltaH);
    }
  }
}

ProgramMceStripe Emitter::program(const Stripe& stripe) const {
  const LayerWeights& layer = now_->pass->weights;
  const FeatureMap& in = now_->pass->inputs[0];
  const bool depthwise = layer.operation == MceOperation::Depthwise,
             vector = layer.operation == MceOperation::FullyConnected, strided = layer.strideX == 2;
  ProgramMceStripe out;
  out.agent = now_->mceAgent;
  const bool upsamples = now_->pass->resampling != Resampling::None;
  const bool oddWidth = upsamples && now_->pass->mceWidth % 2 == 1,
             oddHeight =
                 upsamples && now_->pass->mceHeight % 2 == 1 && stripe.row + 1 == now_->plan->rowStripes;
  const int32_t low = now_->pass->mceSigned ? -128 : 0, high = now_->pass->mceSigned ? 127 : 255;
  out.ceControl =
      ce_control::kIfmPads.of(layer.strideX * layer.strideY) |
      ce_control::kBroadcast.of(
          static_cast<int64_t>(depthwise ? ce_control::Broadcast::Local : ce_control::Broadcast::All)) |
      ce_control::kResampling.of(static_cast<int64_t>(now_->pass->resampling)) |
      ce_control::kOddWidth.of(oddWidth ? 1 : 0) | ce_control::kOddHeight.of(oddHeight ? 1 : 0) |
      ce_control::kSignedIfm.of(in.isSigned ? 1 : 0) |
      ce_control::kWinograd.of(layer.algorithm == MceAlgorithm::Winograd ? 1 : 0) |
      ce_control::kRelu.of(now_->pass->activationMin > low || now_->pass->activationMax < high ? 1 : 0) |
      ce_control::kOutputType.of(now_->pass->mceSigned ? 1 : 0) |
      ce_control::kKeepAccumulators.of(now_->iteration > 0 ? 1 : 0) |
      ce_control::kNoOutput.of(now_->iteration + 1 < now_->plan->iterations ? 1 : 0);
  for (int32_t ce = 0; ce < variant_.engines; ++ce) {
    for (int32_t og = 0; og < variant_.ogsPerEngine; ++og) {
      uint32_t& word = out.mulEnable[static_cast<size_t>(4 * ce + og)];
      if (!depthwise) {
        word = 0xffffffff;
      } else if (og < std::min(variant_.igsPerEngine,
                               divideUp(std::max(stripe.channels, ce) - ce, variant_.engines))) {
        word = 1U << (og * variant_.engines + ce);
      }
    }
  }
  const int32_t channels = depthwise && !strided ? stripe.channels
                           : depthwise           ? interleavedChannels(stripe.channels, variant_)
                                                 : partChannels(*now_->pass, *now_->plan, now_->part);
  const int64_t group = groupStride(channels, variant_);
  const bool packed = now_->plan->columns > 0;
  const int64_t row = group * (vector ? 1 : divideUp(packed ? packedWidth(*now_->plan) : in.width, 8));
  out.ifmRowStride = ifm_row_stride::kDefault.of(row) | ifm_row_stride::kResidual.of(row);
  const int32_t global = vector ? roundUp(channels, 16) : channels;
  out.ifmConfig1 = ifm_config1::kGroupStride.of(group) | ifm_config1::kNumIfm.of(global);
  for (int32_t ce = 0; ce < variant_.engines; ++ce) {
    for (int32_t ig = 0; ig < variant_.igsPerEngine; ++ig) {
      const int32_t igs = variant_.igs(), number = ce + ig * variant_.engines;
      const bool whole = !strided || number < channels % igs;
      out.ifmConfig2[static_cast<size_t>(4 * ce + ig)] =
          ifm_config2::kNumIfm.of(whole ? global : channels / (4 * igs) * 4 * igs);
    }
  }
  programFilter(stripe, out);
  const auto slots = [](size_t slot, bool around, size_t before, size_t after) {
    const auto at = [](size_t s) { return static_cast<int64_t>(s); };
    return ifm_slots::kSlot[0].of(around ? at(before) : 0) | ifm_slots::kSlot[1].of(at(slot)) |
           ifm_slots::kSlot[2].of(around ? at(after) : 0) | ifm_slots::kResidual[1].of(1) |
           ifm_slots::kResidual[2].of(1);
  };
  out.ifmTopSlots = slots(now_->slots[0], packed, now_->slots[0], 0);
  out.ifmMidSlots = slots(now_->slots[1], true, now_->slots[1], now_->slots[1]);
  out.ifmBottomSlots = slots(now_->slots[2], false, 0, 0);
  const bool above = now_->plan->needsAbove && stripe.row > 0;
  const bool below = now_->plan->needsBelow && stripe.row + 1 < now_->plan->inputRowStripes;
  const bool left = packed && now_->plan->needsLeft && stripe.column > 0;
  const bool right = packed && now_->plan->needsRight && (stripe.column + 1) * now_->plan->columns < in.width;
  out.ifmSlotPadConfig =
      ifm_slot_pad_config::kTop.of(above ? 1 : 0) | ifm_slot_pad_config::kBottom.of(below ? 1 : 0) |
      ifm_slot_pad_config::kLeft.of(left ? 1 : 0) | ifm_slot_pad_config::kRight.of(right ? 1 : 0);
  out.ofmStripeSize = ofm_stripe_size::kWidth.of(stripe.width) | ofm_stripe_size::kHeight.of(stripe.height);
  out.ofmConfig = ofm_config::kNumOfm.of(stripe.channels);
  const int32_t ogs = ogsInUse(variant_, layer.operation, now_->plan->channels);
  const int32_t perBank = variant_.ogsPerEngine / variant_.banksPerEngine;
  for (int32_t og = 0; og < variant_.ogsPerEngine; ++og) {
    if (og * variant_.engines >= ogs) break;
    const int64_t half = ogs > variant_.banks() ? now_->plan->weights.slotBytes / perBank : 0;
    out.weightBaseAddress[static_cast<size_t>(og)] = sram_address::kBytes.of(
        now_->weights.address(now_->weightSlot) + og / variant_.banksPerEngine * half);
  }
  const PleKernel& kernel = now_->plan->kernel;
  out.blocks = static_cast<uint32_t>(divideUp(stripe.width, kernel.blockWidth) *
                                     divideUp(stripe.height, kernel.blockHeight) *
                                     divideUp(stripe.channels, variant_.engines));
  return out;
}

std::array<uint32_t, 8> Emitter::scratch(const Stripe& stripe, int64_t outAddress) const {
  const auto low16 = [](int64_t value) { return static_cast<uint32_t>(static_cast<uint16_t>(value)); };
  const auto pair = [&low16](int64_t low, int64_t high) { return low16(low) | low16(high) << 16; };
  const auto input = [this](size_t i) { return now_->inputs[i].address(now_->inputSlots[i]); };
  const int32_t width = stripe.outWidth, height = stripe.outHeight, depth = stripe.outChannels;
  const bool fromSram = now_->pass->kind == PassKind::Ple;
  const int32_t outZero = now_->pass->output.zeroPoint;
  const auto& scales = now_->pass->scales;
  switch (now_->pass->kernel.operation) {
    case PleOperation::MaxPool1d: {
      const FeatureMap& in = now_->pass->inputs[0];
      const int32_t along = now_->pass->kernel.axis == PleAxis::X ? in.width : in.height;
      const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
      return {word(width),
              word(height),
              word(depth),
              word(along),
              word(input(0)),
              word(outAddress),
              word(now_->pass->poolPadBefore),
              word(now_->pass->poolSize)};
    }
    case PleOperation::Multiplication:
      return {pair(width, height),
              static_cast<uint32_t>(depth),
              pair(outZero, 0),
              pair(scales[0].multiplier, scales[0].shift),
              pair(now_->pass->pleZeroPoints[0], now_->pass->pleZeroPoints[1]),
              static_cast<uint32_t>(input(0)),
              static_cast<uint32_t>(input(1)),
              static_cast<uint32_t>(outAddress)};
    default:
      break;
  }
  const uint32_t flags = (stripe.row == 0 ? 1U : 0U) | (stripe.row + 1 == now_->plan->rowStripes ? 2U : 0U) |
                         (stripe.column == 0 ? 4U : 0U) |
                         (stripe.column + 1 == now_->plan->columnStripes ? 8U : 0U);
  const bool depthwise =
      now_->pass->kind == PassKind::Mce && now_->pass->weights.operation == MceOperation::Depthwise;
  return {flags,
          pair(fromSram ? input(0) / 16 : 0, now_->pass->pleZeroPoints[0]),
          pair(scales[0].multiplier, scales[0].shift),
          pair(fromSram && now_->pass->inputs.size() == 2 ? input(1) / 16 : 0, now_->pass->pleZeroPoints[1]),
          pair(scales[1].multiplier, scales[1].shift),
          pair(outAddress / 16, outZero),
          pair(width, height),
          pair(depth, depthwise ? 1 : 0)};
}

}  // namespace carina::ethosn::compiler
