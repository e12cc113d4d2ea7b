// SPDX-License-Identifier: Apache-2.0
#include "ethosn/compiler/emit.hpp"

#include <algorithm>

namespace carina::ethosn::compiler {
namespace {

uint32_t bytesField(int64_t bytes) {
  return dma_bytes::kValue.of(bytes);
}

constexpr int64_t kBrickBytes = 1024;

}  // namespace

void Emitter::wait(Queue queue, Counter counter, uint32_t value) {
  uint32_t& before = waited_[static_cast<size_t>(queue)][static_cast<size_t>(counter)];
  if (value <= before) return;
  before = value;
  stream_.queue(queue).push_back(WaitForCounter{static_cast<uint32_t>(counter), value});
}

uint32_t Emitter::addAgent(Agent agent) {
  stream_.agents.push_back(std::move(agent));
  return static_cast<uint32_t>(stream_.agents.size()) - 1;
}

Emitter::Tile Emitter::makeTile(const TilePlan& plan) {
  Tile tile;
  tile.plan = plan;
  tile.keys.assign(static_cast<size_t>(plan.slots), -1);
  tile.users.assign(static_cast<size_t>(plan.slots), 0);
  return tile;
}

/// Nothing of this pass touches SRAM before everything of the passes in front of it is done: loads wait, and
/// everything else waits for loads.
void Emitter::barrier() {
  wait(Queue::DmaRead, Counter::DmaWrite, count(Counter::DmaWrite));
  wait(Queue::DmaRead, Counter::PleStripe, count(Counter::PleStripe));
}

void Emitter::loadKernel() {
  const int64_t address = target_.bankBytes() - kPleKernelMaxBytes;
  loaderAgent_ = addAgent({PleLoader{kernel_}, {}});
  PleScheduler scheduler;
  const bool fromMce = pass_->kind == PassKind::Mce;
  scheduler.input = !fromMce ? (pass_->inputs.size() == 2 ? PleInput::SramTwo : PleInput::SramOne)
                    : pass_->weights.operation == MceOperation::Depthwise ? PleInput::MceOneOg
                                                                          : PleInput::MceAllOgs;
  scheduler.pleKernel = kernel_;
  scheduler.kernelSramAddress = static_cast<uint32_t>(address);
  if (fromMce) mceAgent_ = addAgent({mceAgent(), {}});
  pleAgent_ = addAgent({scheduler, {}});
  if (kernelInSram_ == kernel_) return;
  kernelInSram_ = kernel_;
  DmaCommand load;
  load.type = CommandType::LoadPleCodeIntoSram;
  load.agent = loaderAgent_;
  load.sramAddress = sram_address::kBytes.of(address);
  load.emcs = (1U << variant_.engines) - 1;
  load.cmd = dma_cmd::kId.of(readId_) | dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Broadcast));
  readId_ = (readId_ + 1) % 4;
  stream_.queue(Queue::DmaRead).push_back(load);
  ++count(Counter::DmaRead);
  wait(Queue::Ple, Counter::DmaRead, count(Counter::DmaRead));
  stream_.queue(Queue::Ple).push_back(LoadPleCodeIntoPleSram{pleAgent_});
  ++count(Counter::PleCodeLoaded);
  wait(Queue::Ple, Counter::PleCodeLoaded, count(Counter::PleCodeLoaded));
}

Agent::Ifm Emitter::streamer(const FeatureMap& map) const {
  Agent::Ifm out;
  out.buffer = static_cast<uint16_t>(buffers_[static_cast<size_t>(map.storage)]);
  out.compConfig0 = dma_comp_config0::kSigned.of(map.isSigned ? 1 : 0) |
                    dma_comp_config0::kZeroPoint.of(static_cast<int8_t>(map.zeroPoint));
  if (list_.storages[static_cast<size_t>(map.storage)].layout == Layout::Nhwc) {
    out.stride1 = bytesField(map.planar ? map.wholeWidth : int64_t{map.wholeWidth} * map.wholeChannels);
  }
  return out;
}

/// A box of whole rows between a slot and DRAM, in as many commands as the layout needs.
Status Emitter::transfer(Queue queue, CommandType type, uint32_t agent, const FeatureMap& map, const Box& box,
                         int64_t address) {
  const bool reads = queue == Queue::DmaRead;
  const int64_t group = groupStride(box.channels, variant_), row = group * divideUp(map.width, 8);
  const auto push = [&](dma_cmd::Format format, int64_t dram, int64_t sram, int32_t channels, int64_t bytes,
                        int64_t stride0) {
    DmaCommand command;
    command.type = type;
    command.agent = agent;
    command.dramOffset = static_cast<uint32_t>(dram);
    command.sramAddress = sram_address::kBytes.of(sram);
    command.channels = dma_channels::kChannels.of(channels);
    command.emcs = (1U << std::min(channels, variant_.banks())) - 1;
    command.totalBytes = bytesField(bytes);
    if (format == dma_cmd::Format::Nchw) {
      command.stride2 = bytesField(int64_t{box.height} * map.width);
      command.stride3 = bytesField(int64_t{map.wholeHeight} * map.wholeWidth);
    }
    if (format == dma_cmd::Format::Nhwc || format == dma_cmd::Format::Nchw)
      command.sramStride = dma_sram_stride::kGroup.of(4);
    if (stride0 > 0) command.stride0 = bytesField(stride0);
    uint32_t& id = reads ? readId_ : writeId_;
    command.cmd = dma_cmd::kId.of(reads ? id : 4 + id) | dma_cmd::kFormat.of(static_cast<int64_t>(format));
    id = (id + 1) % 4;
    stream_.queue(queue).push_back(command);
    ++count(reads ? Counter::DmaRead : Counter::DmaWrite);
  };
  if (pass_->kind == PassKind::Mce && pass_->weights.operation == MceOperation::FullyConnected && reads) {
    const int32_t c = pass_->inputChannels;
    push(dma_cmd::Format::Nhwcb, 0, address, c, int64_t{64} * c, 0);
    return {};
  }
  const int32_t y = map.atY + box.y, c = map.atC + box.c;
  if (map.planar) {
    const int64_t dram = (int64_t{c} * map.wholeHeight + y) * map.wholeWidth + map.atX;
    push(dma_cmd::Format::Nchw, dram, address, box.channels, int64_t{box.height} * map.width * box.channels,
         map.width);
    return {};
  }
  if (list_.storages[static_cast<size_t>(map.storage)].layout == Layout::Nhwc) {
    const int64_t dram = (int64_t{y} * map.wholeWidth + map.atX) * map.wholeChannels + c;
    if (box.channels != map.wholeChannels && map.width != 1) {
      return fail(Code::NoIntegerForm, "the DMA cannot split channels of a map in NHWC").at(pass_->name);
    }
    push(dma_cmd::Format::Nhwc, dram, address, box.channels, int64_t{box.height} * map.width * box.channels,
         int64_t{map.width} * box.channels);
    return {};
  }
  if (y % 8 != 0 || map.atX % 8 != 0 || c % 16 != 0) {
    return fail(Code::NoIntegerForm, "a part of a map in NHWCB begins inside of a brick").at(pass_->name);
  }
  const int64_t bricks = divideUp(map.wholeChannels, 16), brickColumns = divideUp(map.wholeWidth, 8);
  const int32_t columns = divideUp(map.width, 8), rows = divideUp(box.height, 8);
  const auto dramAt = [&](int32_t brickY, int32_t brickX) {
    return kBrickBytes *
           (c / 16 + (map.atX / 8 + brickX) * bricks + (y / 8 + brickY) * bricks * brickColumns);
  };
  const bool allChannels = divideUp(box.channels, 16) == bricks;
  const bool wide = columns == brickColumns;
  // Writes may leave out bricks between two that they write.
  const bool strided = !reads && !allChannels && box.channels <= 16;
  const auto format = strided ? dma_cmd::Format::NhwcbWeightStreaming : dma_cmd::Format::Nhwcb;
  const int64_t gap = strided ? kBrickBytes * (bricks - 1) : 0;
  const int64_t brick = int64_t{64} * box.channels;
  if ((allChannels || strided) && (wide || rows == 1)) {
    push(format, dramAt(0, 0), address, box.channels, brick * columns * rows, gap);
  } else if (allChannels || strided) {
    for (int32_t r = 0; r < rows; ++r) {
      push(format, dramAt(r, 0), address + r * row, box.channels, brick * columns, gap);
    }
  } else {
    for (int32_t r = 0; r < rows; ++r) {
      for (int32_t x = 0; x < columns; ++x) {
        push(format, dramAt(r, x), address + r * row + x * group, box.channels, brick, 0);
      }
    }
  }
  return {};
}

Emitter::Stripe Emitter::stripeAt(int32_t row, int32_t channel) const {
  const bool fromMce = pass_->kind == PassKind::Mce;
  const int32_t allRows = fromMce ? pass_->mceHeight : pass_->inputs[0].height;
  const int32_t allChannels = fromMce ? pass_->mceChannels : pass_->inputs[0].channels;
  Stripe out;
  out.row = row;
  out.channel = channel;
  out.y = row * plan_->rows;
  out.height = std::min(plan_->rows, allRows - out.y);
  out.c = channel * plan_->channels;
  out.channels = std::min(plan_->channels, allChannels - out.c);
  out.outY = row == 0 ? 0 : outputRows(*pass_, out.y);
  out.outHeight = std::min(outputRows(*pass_, out.height), pass_->output.height - out.outY);
  out.outC = outputChannels(*pass_, out.c, variant_);
  out.outChannels = outputChannels(*pass_, out.channels, variant_);
  return out;
}

template <typename Load>
Result<size_t> Emitter::acquire(Tile& tile, int64_t key, Counter freedBy, Load&& load) {
  for (size_t slot = 0; slot < tile.keys.size(); ++slot) {
    if (tile.keys[slot] == key) return slot;
  }
  const size_t slot = tile.next;
  tile.next = (tile.next + 1) % tile.keys.size();
  wait(Queue::DmaRead, freedBy, tile.users[slot]);
  tile.keys[slot] = key;
  CARINA_RETURN_IF_ERROR(load(tile.address(slot)));
  return slot;
}

Status Emitter::loadInputs(const Stripe& stripe) {
  const bool fromMce = pass_->kind == PassKind::Mce;
  const Counter freedBy = fromMce                         ? Counter::MceStripe
                          : pass_->kind == PassKind::Copy ? Counter::DmaWrite
                                                          : Counter::PleStripe;
  const bool mixes = fromMce && pass_->weights.operation != MceOperation::Depthwise;
  const bool vector = fromMce && pass_->weights.operation == MceOperation::FullyConnected;
  inputSlots_.clear();
  for (size_t i = 0; i < pass_->inputs.size(); ++i) {
    const FeatureMap& map = pass_->inputs[i];
    const int32_t first = std::max(0, stripe.row - (plan_->needsAbove ? 1 : 0));
    const int32_t last = std::min(plan_->inputRowStripes - 1, stripe.row + (plan_->needsBelow ? 1 : 0));
    for (int32_t row = first; row <= last; ++row) {
      Box box{0, map.height, 0, pass_->inputChannels};
      if (!mixes) {
        const bool strided = fromMce && pass_->weights.strideX == 2;
        box.c = strided ? interleavedChannels(stripe.c, variant_) : stripe.c;
        box.channels = strided ? interleavedChannels(stripe.channels, variant_) : stripe.channels;
      }
      if (plan_->inputRowStripes > 1) {
        const int32_t rows = plan_->rows / pass_->upscale();
        box.y = row * rows;
        box.height = std::min(rows, map.height - box.y);
      }
      const int64_t key = int64_t{row} * plan_->channelStripes + (mixes ? 0 : stripe.channel);
      CARINA_TRY(const size_t slot, acquire(inputs_[i], vector ? 0 : key, freedBy, [&](int64_t address) {
                   return transfer(Queue::DmaRead, CommandType::LoadIfmStripe, inputAgents_[i], map, box,
                                   address);
                 }));
      if (row == stripe.row) inputSlots_.push_back(slot);
      slots_[static_cast<size_t>(row - stripe.row + 1)] = slot;
    }
    if (!plan_->needsAbove || stripe.row == 0) slots_[0] = slots_[1];
    if (!plan_->needsBelow || stripe.row == plan_->inputRowStripes - 1) slots_[2] = slots_[1];
  }
  return {};
}

MceScheduler Emitter::mceAgent() const {
  const LayerWeights& layer = pass_->weights;
  const FeatureMap& in = pass_->inputs[0];
  const bool vector = layer.operation == MceOperation::FullyConnected;
  MceScheduler out;
  out.operation = layer.operation;
  out.pleKernel = kernel_;
  out.activationConfig =
      activation_config::kMin.of(pass_->activationMin) | activation_config::kMax.of(pass_->activationMax);
  const bool wide = filterPieces(layer.height, layer.width, MceAlgorithm::Direct).size() > 1;
  const filter::Mode mode = vector                                       ? filter::Mode::VectorProduct
                            : layer.operation == MceOperation::Depthwise ? filter::Mode::Depthwise
                                                                         : filter::Mode::FilterNxM;
  out.filter = filter::kMode.of(static_cast<int64_t>(mode));
  if (wide) {
    const auto thirds = [](int32_t size) { return size == 1 ? 1 : roundUp(size, 3); };
    out.wideKernelControl = wide_kernel_control::kEnable.of(1) |
                            wide_kernel_control::kWidth.of(thirds(layer.width)) |
                            wide_kernel_control::kHeight.of(thirds(layer.height));
  } else if (!vector) {
    const std::vector<SubFilter> subs = subFilters(layer);
    for (size_t i = 0; i < 4; ++i) {
      const SubFilter& sub = subs[std::min(i, subs.size() - 1)];
      // What the stride leaves without weights is a filter of one zero.
      const bool there = sub.height > 0 && sub.width > 0;
      out.filter |=
          filter::kWidth[i].of(there ? sub.width : 1) | filter::kHeight[i].of(there ? sub.height : 1);
    }
  }
  out.ifmZeroPoint = static_cast<uint8_t>(in.zeroPoint);
  const int32_t slotRows = plan_->inputRowStripes > 1 ? plan_->rows / pass_->upscale() : in.height;
  out.ifmDefaultSlotSize = ifm_default_slot_size::kWidth.of(vector ? 8 : roundUp(in.width, 8)) |
                           ifm_default_slot_size::kHeight.of(vector ? 8 : roundUp(slotRows, 8));
  out.ifmSlotStride = sram_address::kBytes.of(plan_->inputs[0].slotBytes);
  out.stripeBlockConfig = stripe_block_config::kWidth.of(pass_->kernel.blockWidth) |
                          stripe_block_config::kHeight.of(pass_->kernel.blockHeight);
  out.depthwiseControl = depthwise_control::kIfmsPerOfm.of(layer.strideX * layer.strideY);
  out.ifmSlotBaseAddress = sram_address::kBytes.of(plan_->inputs[0].address);
  const int32_t block = pass_->kernel.blockWidth * pass_->kernel.blockHeight;
  out.pleMceifConfig =
      ple_mceif_config::kBuffers.of(1024 / block) | ple_mceif_config::kBufferWords.of(block / 16);
  return out;
}

/// Padding, and how much valid data there is to the right and below.
void Emitter::programFilter(const Stripe& stripe, ProgramMceStripe& out) const {
  const LayerWeights& layer = pass_->weights;
  const FeatureMap& in = pass_->inputs[0];
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
    // An odd size leaves the second sub-map of a direction one short; the whole map is then ceil(size / 2).
    int32_t height = in.height * pass_->upscale(), width = in.width * pass_->upscale();
    // Without a filter's reach, what the map is resized to is all that there is.
    if (pass_->resampling != Resampling::None && pass_->resampling != Resampling::Transpose) {
      height = pass_->mceHeight;
      width = pass_->mceWidth;
    }
    if (strided) {
      height -= i / 2 == 1 && pass_->oddHeight ? 1 : 0;
      width -= i % 2 == 1 && pass_->oddWidth ? 1 : 0;
    }
    const int32_t deltaH = std::min(15, height - stripe.y - stripe.height),
                  deltaW = std::min(15, width - pass_->mceWidth);
    const bool wide = filterPieces(layer.height, layer.width, MceAlgorithm::Direct).size() > 1;
    if (wide) {
      out.wideKernelOffset = wide_kernel_offset::kWidth.of(pass_->subLeft[i]) |
                             wide_kernel_offset::kHeight.of(pass_->subTop[i]) |
                             wide_kernel_offset::kDeltaWidth.of(deltaW) |
                             wide_kernel_offset::kDeltaHeight.of(deltaH);
      continue;
    }
    for (size_t ig = 0; ig < igs; ++ig) {
      out.ifmPad[4 * i + ig] = ifm_pad::kLeft.of(pass_->subLeft[i]) | ifm_pad::kTop.of(pass_->subTop[i]) |
                               ifm_pad::kDeltaWidth.of(deltaW) | ifm_pad::kDeltaHeight.of(deltaH);
    }
  }
}

ProgramMceStripe Emitter::program(const Stripe& stripe) const {
  const LayerWeights& layer = pass_->weights;
  const FeatureMap& in = pass_->inputs[0];
  const bool depthwise = layer.operation == MceOperation::Depthwise,
             vector = layer.operation == MceOperation::FullyConnected, strided = layer.strideX == 2;
  ProgramMceStripe out;
  out.agent = mceAgent_;
  const bool upsamples = pass_->resampling != Resampling::None;
  const bool oddWidth = upsamples && pass_->mceWidth % 2 == 1,
             oddHeight = upsamples && pass_->mceHeight % 2 == 1 && stripe.row + 1 == plan_->rowStripes;
  const int32_t low = pass_->mceSigned ? -128 : 0, high = pass_->mceSigned ? 127 : 255;
  out.ceControl = ce_control::kIfmPads.of(layer.strideX * layer.strideY) |
                  ce_control::kBroadcast.of(static_cast<int64_t>(depthwise ? ce_control::Broadcast::Local
                                                                           : ce_control::Broadcast::All)) |
                  ce_control::kResampling.of(static_cast<int64_t>(pass_->resampling)) |
                  ce_control::kOddWidth.of(oddWidth ? 1 : 0) | ce_control::kOddHeight.of(oddHeight ? 1 : 0) |
                  ce_control::kSignedIfm.of(in.isSigned ? 1 : 0) |
                  ce_control::kRelu.of(pass_->activationMin > low || pass_->activationMax < high ? 1 : 0) |
                  ce_control::kOutputType.of(pass_->mceSigned ? 1 : 0);
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
                                                 : pass_->inputChannels;
  const int64_t group = groupStride(channels, variant_);
  const int64_t row = group * (vector ? 1 : divideUp(in.width, 8));
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
  out.ifmTopSlots = slots(slots_[0], false, 0, 0);
  out.ifmMidSlots = slots(slots_[1], true, slots_[1], slots_[1]);
  out.ifmBottomSlots = slots(slots_[2], false, 0, 0);
  const bool above = plan_->needsAbove && stripe.row > 0;
  const bool below = plan_->needsBelow && stripe.row + 1 < plan_->inputRowStripes;
  out.ifmSlotPadConfig =
      ifm_slot_pad_config::kTop.of(above ? 1 : 0) | ifm_slot_pad_config::kBottom.of(below ? 1 : 0);
  out.ofmStripeSize =
      ofm_stripe_size::kWidth.of(pass_->mceWidth) | ofm_stripe_size::kHeight.of(stripe.height);
  out.ofmConfig = ofm_config::kNumOfm.of(stripe.channels);
  const int32_t ogs = ogsInUse(variant_, layer.operation, plan_->channels);
  const int32_t perBank = variant_.ogsPerEngine / variant_.banksPerEngine;
  for (int32_t og = 0; og < variant_.ogsPerEngine; ++og) {
    if (og * variant_.engines >= ogs) break;
    const int64_t half = ogs > variant_.banks() ? plan_->weights.slotBytes / perBank : 0;
    out.weightBaseAddress[static_cast<size_t>(og)] =
        sram_address::kBytes.of(weights_.address(weightSlot_) + og / variant_.banksPerEngine * half);
  }
  const PleKernel& kernel = pass_->kernel;
  out.blocks = static_cast<uint32_t>(divideUp(pass_->mceWidth, kernel.blockWidth) *
                                     divideUp(stripe.height, kernel.blockHeight) *
                                     divideUp(stripe.channels, variant_.engines));
  return out;
}

std::array<uint32_t, 8> Emitter::scratch(const Stripe& stripe, int64_t outAddress) const {
  const auto low16 = [](int64_t value) { return static_cast<uint32_t>(static_cast<uint16_t>(value)); };
  const auto pair = [&low16](int64_t low, int64_t high) { return low16(low) | low16(high) << 16; };
  const auto input = [this](size_t i) { return inputs_[i].address(inputSlots_[i]); };
  const int32_t width = pass_->output.width, height = stripe.outHeight, depth = stripe.outChannels;
  const bool fromSram = pass_->kind == PassKind::Ple;
  const int32_t outZero = pass_->output.zeroPoint;
  const auto& scales = pass_->scales;
  switch (pass_->kernel.operation) {
    case PleOperation::MaxPool1d: {
      const FeatureMap& in = pass_->inputs[0];
      const int32_t along = pass_->kernel.axis == PleAxis::X ? in.width : in.height;
      const auto word = [](int64_t value) { return static_cast<uint32_t>(value); };
      return {word(width),
              word(height),
              word(depth),
              word(along),
              word(input(0)),
              word(outAddress),
              word(pass_->poolPadBefore),
              word(pass_->poolSize)};
    }
    case PleOperation::Multiplication:
      return {pair(width, height),
              static_cast<uint32_t>(depth),
              pair(outZero, 0),
              pair(scales[0].multiplier, scales[0].shift),
              pair(pass_->pleZeroPoints[0], pass_->pleZeroPoints[1]),
              static_cast<uint32_t>(input(0)),
              static_cast<uint32_t>(input(1)),
              static_cast<uint32_t>(outAddress)};
    default:
      break;
  }
  const uint32_t flags =
      (stripe.row == 0 ? 1U : 0U) | (stripe.row + 1 == plan_->rowStripes ? 2U : 0U) | 4U | 8U;
  const bool depthwise = pass_->kind == PassKind::Mce && pass_->weights.operation == MceOperation::Depthwise;
  return {flags,
          pair(fromSram ? input(0) / 16 : 0, pass_->pleZeroPoints[0]),
          pair(scales[0].multiplier, scales[0].shift),
          pair(fromSram && pass_->inputs.size() == 2 ? input(1) / 16 : 0, pass_->pleZeroPoints[1]),
          pair(scales[1].multiplier, scales[1].shift),
          pair(outAddress / 16, outZero),
          pair(width, height),
          pair(depth, depthwise ? 1 : 0)};
}

Status Emitter::mceStripe(const Stripe& stripe) {
  const int64_t key = stripe.channel;
  CARINA_TRY(weightSlot_, acquire(weights_, key, Counter::MceStripe, [&](int64_t address) -> Status {
               DmaCommand load;
               load.type = CommandType::LoadWeightStripe;
               load.agent = weightAgent_;
               load.dramOffset = static_cast<uint32_t>(plan_->encoded.offset(stripe.channel, 0));
               load.sramAddress = sram_address::kBytes.of(address);
               load.emcs = (1U << variant_.banks()) - 1;
               load.totalBytes = bytesField(plan_->encoded.stripeBytes);
               load.cmd = dma_cmd::kId.of(readId_) |
                          dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Weights));
               readId_ = (readId_ + 1) % 4;
               stream_.queue(Queue::DmaRead).push_back(load);
               ++count(Counter::DmaRead);
               return {};
             }));
  std::vector<Command>& mce = stream_.queue(Queue::Mce);
  mce.push_back(program(stripe));
  wait(Queue::Mce, Counter::DmaRead, count(Counter::DmaRead));
  if (stripe.row == 0 && stripe.channel == 0) {
    wait(Queue::Mce, Counter::PleStripe, count(Counter::PleStripe));
    mce.push_back(ConfigMceif{mceAgent_});
    ++count(Counter::Mceif);
    wait(Queue::Ple, Counter::Mceif, count(Counter::Mceif));
  }
  const bool vector = pass_->weights.operation == MceOperation::FullyConnected;
  const int32_t engines = vector ? 0 : std::min(stripe.channels, variant_.engines);
  mce.push_back(StartMceStripe{mceAgent_, static_cast<uint32_t>(engines)});
  const uint32_t done = ++count(Counter::MceStripe);
  weights_.users[weightSlot_] = done;
  for (size_t slot : slots_) inputs_[0].users[slot] = done;
  return {};
}

Status Emitter::passStripes() {
  const int32_t outer = plan_->channelsOutside ? plan_->channelStripes : plan_->rowStripes;
  const int32_t inner = plan_->channelsOutside ? plan_->rowStripes : plan_->channelStripes;
  for (int32_t o = 0; o < outer; ++o) {
    for (int32_t i = 0; i < inner; ++i) {
      const Stripe stripe = plan_->channelsOutside ? stripeAt(i, o) : stripeAt(o, i);
      CARINA_RETURN_IF_ERROR(loadInputs(stripe));
      const Box box{stripe.outY, stripe.outHeight, stripe.outC, stripe.outChannels};
      if (pass_->kind == PassKind::Copy) {
        const size_t slot = inputSlots_[0];
        wait(Queue::DmaWrite, Counter::DmaRead, count(Counter::DmaRead));
        CARINA_RETURN_IF_ERROR(transfer(Queue::DmaWrite, CommandType::StoreOfmStripe, outputAgent_,
                                        pass_->output, box, inputs_[0].address(slot)));
        inputs_[0].users[slot] = count(Counter::DmaWrite);
        continue;
      }
      if (pass_->kind == PassKind::Mce) {
        CARINA_RETURN_IF_ERROR(mceStripe(stripe));
      } else {
        wait(Queue::Ple, Counter::DmaRead, count(Counter::DmaRead));
      }
      const size_t slot = output_.next;
      output_.next = (output_.next + 1) % output_.keys.size();
      wait(Queue::Ple, Counter::DmaWrite, output_.users[slot]);
      stream_.queue(Queue::Ple).push_back(StartPleStripe{pleAgent_, scratch(stripe, output_.address(slot))});
      const uint32_t done = ++count(Counter::PleStripe);
      if (pass_->kind == PassKind::Ple) {
        for (size_t n = 0; n < inputs_.size(); ++n) inputs_[n].users[inputSlots_[n]] = done;
      }
      if (!plan_->stored) continue;
      wait(Queue::DmaWrite, Counter::PleStripe, done);
      CARINA_RETURN_IF_ERROR(transfer(Queue::DmaWrite, CommandType::StoreOfmStripe, outputAgent_,
                                      pass_->output, box, output_.address(slot)));
      output_.users[slot] = count(Counter::DmaWrite);
    }
  }
  return {};
}

Status Emitter::emit(const Pass& pass, const Plan& plan, uint32_t weights) {
  pass_ = &pass;
  plan_ = &plan;
  barrier();
  inputs_.clear();
  inputAgents_.clear();
  for (size_t i = 0; i < pass.inputs.size(); ++i) {
    inputs_.push_back(makeTile(plan.inputs[i]));
    // What an earlier pass left in SRAM is as good as loaded.
    const bool resident = plan.resident[i];
    if (resident) inputs_.back().keys[0] = 0;
    inputAgents_.push_back(resident ? 0 : addAgent({streamer(pass.inputs[i]), {}}));
  }
  if (pass.kind == PassKind::Mce) {
    weights_ = makeTile(plan.weights);
    weightAgent_ = addAgent({WeightStreamer{static_cast<uint16_t>(weights)}, {}});
  }
  if (pass.kind != PassKind::Copy) {
    output_ = makeTile(plan.output);
    const std::optional<uint16_t> kernel = pleKernelId(*variant_.kernels, pass.kernel);
    CARINA_CHECK(kernel.has_value(), "the compiler asks for kernels that there are");
    kernel_ = *kernel;
    loadKernel();
  }
  if (plan.stored) {
    Agent::Ofm out;
    static_cast<TensorStreamer&>(out) = streamer(pass.output);
    outputAgent_ = addAgent({out, {}});
  }
  return passStripes();
}

}  // namespace carina::ethosn::compiler
