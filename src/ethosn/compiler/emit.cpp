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

uint32_t Emitter::addAgent(const Agent& agent) {
  stream_.agents.push_back(agent);
  return static_cast<uint32_t>(stream_.agents.size()) - 1;
}

Emitter::Tile Emitter::makeTile(const TilePlan& plan) {
  Tile tile;
  tile.plan = plan;
  tile.keys.assign(static_cast<size_t>(plan.slots), -1);
  tile.users.assign(static_cast<size_t>(plan.slots), 0);
  return tile;
}

/// Makes the list wait until nothing uses the tile. Counters that its own order covers are skipped: when a
/// PLE stripe begins, the PLE has consumed all earlier MCE results.
void Emitter::waitForRoom(Queue queue, const TilePlan& tile) {
  const Until until = uses_.until(tile.address, tile.address + tile.slotBytes * tile.slots);
  for (size_t i = 0; i < kCounters; ++i) {
    const auto counter = static_cast<Counter>(i);
    const bool inOrder =
        (queue == Queue::DmaRead && counter == Counter::DmaRead) ||
        (queue == Queue::Ple && (counter == Counter::PleStripe || counter == Counter::MceStripe));
    if (!inOrder) wait(queue, counter, until[i]);
  }
}

/// Adds the agents, and loads the code into SRAM.
void Emitter::loadKernel() {
  const int64_t address = target_.bankBytes() - kPleKernelMaxBytes * (1 + now_->plan->kernelPlace);
  now_->kernelAddress = address;
  now_->loaderAgent = addAgent({PleLoader{now_->kernel}, {}});
  PleScheduler scheduler;
  const bool fromMce = now_->pass->kind == PassKind::Mce;
  scheduler.input = !fromMce ? (now_->pass->inputs.size() == 2 ? PleInput::SramTwo : PleInput::SramOne)
                    : now_->pass->weights.operation == MceOperation::Depthwise ? PleInput::MceOneOg
                                                                               : PleInput::MceAllOgs;
  scheduler.pleKernel = now_->kernel;
  scheduler.kernelSramAddress = static_cast<uint32_t>(address);
  if (fromMce) now_->mceAgent = addAgent({mceAgent(), {}});
  now_->pleAgent = addAgent({scheduler, {}});
  const auto there = kernelsInSram_.find(address);
  if (there != kernelsInSram_.end() && there->second == now_->kernel) return;
  kernelsInSram_[address] = now_->kernel;
  waitForRoom(Queue::DmaRead, {address, kPleKernelMaxBytes, 1});
  DmaCommand load;
  load.type = CommandType::LoadPleCodeIntoSram;
  load.agent = now_->loaderAgent;
  load.sramAddress = sram_address::kBytes.of(address);
  load.emcs = (1U << variant_.engines) - 1;
  load.cmd = dma_cmd::kId.of(readId_) | dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Broadcast));
  readId_ = (readId_ + 1) % 4;
  stream_.queue(Queue::DmaRead).push_back(load);
  ++count(Counter::DmaRead);
  Until loaded{};
  loaded[static_cast<size_t>(Counter::DmaRead)] = count(Counter::DmaRead);
  uses_.replace(address, address + kPleKernelMaxBytes, loaded);
}

/// Loads the code into the PLE.
void Emitter::chooseKernel() {
  if (kernelInPle_ == now_->kernel) return;
  kernelInPle_ = now_->kernel;
  const int64_t from = now_->kernelAddress, to = from + kPleKernelMaxBytes;
  wait(Queue::Ple, Counter::DmaRead, uses_.until(from, to)[static_cast<size_t>(Counter::DmaRead)]);
  stream_.queue(Queue::Ple).push_back(LoadPleCodeIntoPleSram{now_->pleAgent});
  ++count(Counter::PleCodeLoaded);
  wait(Queue::Ple, Counter::PleCodeLoaded, count(Counter::PleCodeLoaded));
  Until read{};
  read[static_cast<size_t>(Counter::PleCodeLoaded)] = count(Counter::PleCodeLoaded);
  uses_.add(from, to, read);
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

/// Transfers a box between a slot and DRAM, in as many commands as the layout needs.
Status Emitter::transfer(Queue queue, CommandType type, uint32_t agent, const FeatureMap& whole,
                         const Box& box, int64_t address, int64_t rowStride) {
  FeatureMap map = whole;
  if (box.width >= 0) {
    map.atX += box.x;
    map.width = box.width;
  }
  const bool reads = queue == Queue::DmaRead;
  const int64_t group = groupStride(box.channels, variant_);
  const int64_t row = rowStride > 0 ? rowStride : group * divideUp(map.width, 8);
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
  if (now_->pass->kind == PassKind::Mce && now_->pass->weights.operation == MceOperation::FullyConnected &&
      reads) {
    const int32_t c = now_->pass->inputChannels;
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
      return fail(Code::NoIntegerForm, "the DMA cannot split channels of a map in NHWC").at(now_->pass->name);
    }
    push(dma_cmd::Format::Nhwc, dram, address, box.channels, int64_t{box.height} * map.width * box.channels,
         int64_t{map.width} * box.channels);
    return {};
  }
  const int32_t inBrick = c % 16;  // first channel in its brick; if not 0, the box must end in the same brick
  if (y % 8 != 0 || map.atX % 8 != 0 || (inBrick != 0 && inBrick + box.channels > 16)) {
    return fail(Code::NoIntegerForm, "a part of a map in NHWCB begins inside of a brick")
        .at(now_->pass->name);
  }
  const int64_t bricks = divideUp(map.wholeChannels, 16), brickColumns = divideUp(map.wholeWidth, 8);
  const BoxLayout layout = boxLayout(list_, map, box.height, box.channels, reads);
  const auto dramAt = [&](int32_t brickY, int32_t brickX) {
    return kBrickBytes *
               (c / 16 + (map.atX / 8 + brickX) * bricks + (y / 8 + brickY) * bricks * brickColumns) +
           int64_t{16} * inBrick;
  };
  const auto format = layout.strided ? dma_cmd::Format::NhwcbWeightStreaming : dma_cmd::Format::Nhwcb;
  const int64_t gap = layout.strided ? kBrickBytes * (bricks - 1) : 0;
  const int64_t brick = int64_t{64} * box.channels;
  if (layout.inOne && (rowStride == 0 || layout.rows == 1)) {
    push(format, dramAt(0, 0), address, box.channels, brick * layout.columns * layout.rows, gap);
    return {};
  }
  for (int32_t r = 0; r < layout.rows; ++r) {
    if (layout.rowByRow) {
      push(format, dramAt(r, 0), address + r * row, box.channels, brick * layout.columns, gap);
      continue;
    }
    for (int32_t x = 0; x < layout.columns; ++x)
      push(format, dramAt(r, x), address + r * row + x * group, box.channels, brick, 0);
  }
  return {};
}

Emitter::Stripe Emitter::stripeAt(int32_t row, int32_t column, int32_t channel) const {
  const bool fromMce = now_->pass->kind == PassKind::Mce;
  const int32_t allRows = fromMce ? now_->pass->mceHeight : now_->pass->inputs[0].height;
  const int32_t allChannels = fromMce ? now_->pass->mceChannels : now_->pass->inputs[0].channels;
  Stripe out;
  out.row = row;
  out.column = column;
  out.channel = channel;
  out.y = row * now_->plan->rows;
  out.height = std::min(now_->plan->rows, allRows - out.y);
  out.c = channel * now_->plan->channels;
  out.channels = std::min(now_->plan->channels, allChannels - out.c);
  out.outY = row == 0 ? 0 : outputRows(*now_->pass, out.y);
  out.outHeight = std::min(outputRows(*now_->pass, out.height), now_->pass->output.height - out.outY);
  out.outC = outputChannels(*now_->pass, out.c, variant_);
  out.outChannels = outputChannels(*now_->pass, out.channels, variant_);
  out.width = fromMce ? now_->pass->mceWidth : now_->pass->inputs[0].width;
  out.outWidth = now_->pass->output.width;
  if (now_->plan->columns == 0) return out;
  out.x = column * now_->plan->columns;
  out.width = std::min(now_->plan->columns, out.width - out.x);
  out.outX = outputColumns(*now_->pass, out.x);
  out.outWidth = std::min(outputColumns(*now_->pass, out.width), out.outWidth - out.outX);
  return out;
}

/// The slot for the next load: the least recently used of those that hold none of the keys.
size_t Emitter::nextSlot(const Tile& tile, int64_t firstKey, int64_t lastKey) const {
  std::optional<size_t> oldest;
  for (size_t slot = 0; slot < tile.keys.size(); ++slot) {
    const bool needed = tile.keys[slot] >= firstKey && tile.keys[slot] <= lastKey;
    if (!needed && (!oldest || tile.users[slot] < tile.users[*oldest])) oldest = slot;
  }
  return oldest.value_or(0);
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

/// Loads the part of an input that a stripe of some columns reads, into its own slot.
Status Emitter::loadPacked(size_t input, const Stripe& stripe) {
  const Plan& plan = *now_->plan;
  const FeatureMap& map = now_->pass->inputs[input];
  const int32_t channels = partChannels(*now_->pass, plan, now_->part);
  const int64_t group = groupStride(channels, variant_), row = group * (packedWidth(plan) / 8);
  const int64_t position = int64_t{stripe.row} * plan.columnStripes + stripe.column;
  const auto load = [&](int64_t address) -> Status {
    for (const PackedBox& box : packedBoxes(plan, map, stripe.row, stripe.column)) {
      CARINA_RETURN_IF_ERROR(
          transfer(Queue::DmaRead, CommandType::LoadIfmStripe, now_->inputAgents[input], map,
                   {box.y, box.height, now_->part * plan.iterationChannels, channels, box.x, box.width},
                   address + box.slotY / 8 * row + box.slotX / 8 * group, row));
    }
    return {};
  };
  CARINA_TRY(const size_t slot,
             acquire(now_->inputs[input], position * plan.iterations + now_->part, Counter::MceStripe, load));
  now_->inputSlots.push_back(slot);
  now_->slots = {slot, slot, slot};
  return {};
}

Status Emitter::loadInputs(const Stripe& stripe) {
  const bool fromMce = now_->pass->kind == PassKind::Mce;
  const Counter freedBy = fromMce                              ? Counter::MceStripe
                          : now_->pass->kind == PassKind::Copy ? Counter::DmaWrite
                                                               : Counter::PleStripe;
  const bool mixes = fromMce && now_->pass->weights.operation != MceOperation::Depthwise;
  const bool vector = fromMce && now_->pass->weights.operation == MceOperation::FullyConnected;
  now_->inputSlots.clear();
  for (size_t i = 0; i < now_->pass->inputs.size(); ++i) {
    const FeatureMap& map = now_->pass->inputs[i];
    if (now_->plan->chained == static_cast<int32_t>(i)) {
      takeFromChain(i, stripe);
      continue;
    }
    if (now_->plan->columns > 0) {
      CARINA_RETURN_IF_ERROR(loadPacked(i, stripe));
      continue;
    }
    const int32_t first = std::max(0, stripe.row - (now_->plan->needsAbove ? 1 : 0));
    const int32_t last =
        std::min(now_->plan->inputRowStripes - 1, stripe.row + (now_->plan->needsBelow ? 1 : 0));
    for (int32_t row = first; row <= last; ++row) {
      Box box{0, map.height, 0, now_->pass->inputChannels};
      if (now_->plan->iterations > 1) {
        box.c = now_->part * now_->plan->iterationChannels;
        box.channels = partChannels(*now_->pass, *now_->plan, now_->part);
      }
      if (!mixes) {
        const bool strided = fromMce && now_->pass->weights.strideX == 2;
        box.c = strided ? interleavedChannels(stripe.c, variant_) : stripe.c;
        box.channels = strided ? interleavedChannels(stripe.channels, variant_) : stripe.channels;
      }
      if (now_->plan->inputRowStripes > 1) {
        const int32_t rows = now_->plan->rows / now_->pass->upscale();
        box.y = row * rows;
        box.height = std::min(rows, map.height - box.y);
      }
      int64_t key = int64_t{row} * now_->plan->channelStripes + (mixes ? 0 : stripe.channel);
      if (now_->plan->iterations > 1) {
        const auto keyOf = [&](int32_t of) { return int64_t{now_->part} * now_->plan->inputRowStripes + of; };
        key = keyOf(row);
        now_->inputs[i].next = nextSlot(now_->inputs[i], keyOf(first), keyOf(last));
      }
      CARINA_TRY(const size_t slot, acquire(now_->inputs[i], vector ? 0 : key, freedBy, [&](int64_t address) {
                   return transfer(Queue::DmaRead, CommandType::LoadIfmStripe, now_->inputAgents[i], map, box,
                                   address);
                 }));
      if (row == stripe.row) now_->inputSlots.push_back(slot);
      now_->slots[static_cast<size_t>(row - stripe.row + 1)] = slot;
    }
    if (!now_->plan->needsAbove || stripe.row == 0) now_->slots[0] = now_->slots[1];
    if (!now_->plan->needsBelow || stripe.row == now_->plan->inputRowStripes - 1)
      now_->slots[2] = now_->slots[1];
  }
  return {};
}

/// Uses the rows that the preceding pass has produced so far.
void Emitter::takeFromChain(size_t input, const Stripe& stripe) {
  const Running& front = *(now_ - 1);
  const int32_t slots = now_->plan->inputs[input].slots;
  const int32_t above = std::max(0, stripe.row - (now_->plan->needsAbove ? 1 : 0));
  const int32_t below =
      std::min(now_->plan->inputRowStripes - 1, stripe.row + (now_->plan->needsBelow ? 1 : 0));
  const auto slotOf = [slots](int32_t row) { return static_cast<size_t>(row) % static_cast<size_t>(slots); };
  now_->slots = {slotOf(above), slotOf(stripe.row), slotOf(below)};
  now_->inputSlots.push_back(now_->slots[1]);
  now_->residentsReady = std::max(now_->residentsReady, front.madeAt[static_cast<size_t>(below)]);
}

Status Emitter::loadWeights(const Stripe& stripe) {
  const int64_t key = int64_t{stripe.channel} * now_->plan->iterations + now_->part;
  CARINA_TRY(
      now_->weightSlot, acquire(now_->weights, key, Counter::MceStripe, [&](int64_t address) -> Status {
        DmaCommand load;
        load.type = CommandType::LoadWeightStripe;
        load.agent = now_->weightAgent;
        load.dramOffset = static_cast<uint32_t>(now_->plan->encoded->offset(stripe.channel, now_->part));
        load.sramAddress = sram_address::kBytes.of(address);
        load.emcs = (1U << variant_.banks()) - 1;
        load.totalBytes = bytesField(now_->plan->weightLoadBytes());
        load.cmd =
            dma_cmd::kId.of(readId_) | dma_cmd::kFormat.of(static_cast<int64_t>(dma_cmd::Format::Weights));
        readId_ = (readId_ + 1) % 4;
        stream_.queue(Queue::DmaRead).push_back(load);
        ++count(Counter::DmaRead);
        return {};
      }));
  return {};
}

Status Emitter::mceStripe(const Stripe& stripe) {
  CARINA_RETURN_IF_ERROR(loadWeights(stripe));
  std::vector<Command>& mce = stream_.queue(Queue::Mce);
  mce.push_back(program(stripe));
  wait(Queue::Mce, Counter::DmaRead, count(Counter::DmaRead));
  wait(Queue::Mce, Counter::PleStripe, now_->residentsReady);
  if (mceifKernel_ != now_->kernel) {
    mceifKernel_ = now_->kernel;
    wait(Queue::Mce, Counter::PleStripe, count(Counter::PleStripe));
    mce.push_back(ConfigMceif{now_->mceAgent});
    ++count(Counter::Mceif);
  }
  wait(Queue::Ple, Counter::Mceif, count(Counter::Mceif));
  const bool vector = now_->pass->weights.operation == MceOperation::FullyConnected;
  const int32_t engines = vector ? 0 : std::min(stripe.channels, variant_.engines);
  mce.push_back(StartMceStripe{now_->mceAgent, static_cast<uint32_t>(engines)});
  const uint32_t done = ++count(Counter::MceStripe);
  now_->weights.users[now_->weightSlot] = done;
  for (size_t slot : now_->slots) now_->inputs[0].users[slot] = done;
  return {};
}

/// All MCE stripes that one PLE stripe consumes.
Status Emitter::mceStripes(const Stripe& stripe) {
  const int32_t iterations = now_->plan->iterations;
  for (now_->iteration = 0; now_->iteration < iterations; ++now_->iteration) {
    now_->part = partOf(iterations, now_->madeAt.size(), now_->iteration);
    if (now_->iteration > 0) CARINA_RETURN_IF_ERROR(loadInputs(stripe));
    CARINA_RETURN_IF_ERROR(mceStripe(stripe));
  }
  return {};
}

Status Emitter::passStripe(const Stripe& stripe) {
  now_->part = partOf(now_->plan->iterations, now_->madeAt.size(), 0);
  CARINA_RETURN_IF_ERROR(loadInputs(stripe));
  Box box{stripe.outY, stripe.outHeight, stripe.outC, stripe.outChannels};
  if (now_->plan->columns > 0) {
    box.x = stripe.outX;
    box.width = stripe.outWidth;
  }
  if (now_->pass->kind == PassKind::Copy) {
    const size_t slot = now_->inputSlots[0];
    wait(Queue::DmaWrite, Counter::DmaRead, count(Counter::DmaRead));
    CARINA_RETURN_IF_ERROR(transfer(Queue::DmaWrite, CommandType::StoreOfmStripe, now_->outputAgent,
                                    now_->pass->output, box, now_->inputs[0].address(slot)));
    now_->inputs[0].users[slot] = count(Counter::DmaWrite);
    return {};
  }
  chooseKernel();
  if (now_->pass->kind == PassKind::Mce) {
    CARINA_RETURN_IF_ERROR(mceStripes(stripe));
  } else {
    wait(Queue::Ple, Counter::DmaRead, count(Counter::DmaRead));
  }
  Tile& output = now_->output;
  const size_t slot = output.next;
  output.next = (output.next + 1) % output.keys.size();
  wait(Queue::Ple, Counter::DmaWrite, output.users[slot]);
  stream_.queue(Queue::Ple).push_back(StartPleStripe{now_->pleAgent, scratch(stripe, output.address(slot))});
  const uint32_t done = ++count(Counter::PleStripe);
  now_->madeAt.push_back(done);
  if (now_->pass->kind == PassKind::Ple) {
    for (size_t n = 0; n < now_->inputs.size(); ++n) now_->inputs[n].users[now_->inputSlots[n]] = done;
  }
  if (!now_->plan->stored) return {};
  if (now_->unfinished)
    CARINA_RETURN_IF_ERROR(storeStripe(now_->unfinished->first, now_->unfinished->second));
  now_->unfinished.reset();
  if (endsRowsLater(*now_->pass) && stripe.row + 1 < now_->plan->rowStripes) {
    now_->unfinished.emplace(box, slot);
    return {};
  }
  return storeStripe(box, slot);
}

/// Stores a part of the output when the PLE has finished everything issued so far.
Status Emitter::storeStripe(const Box& box, size_t slot) {
  wait(Queue::DmaWrite, Counter::PleStripe, count(Counter::PleStripe));
  CARINA_RETURN_IF_ERROR(transfer(Queue::DmaWrite, CommandType::StoreOfmStripe, now_->outputAgent,
                                  now_->pass->output, box, now_->output.address(slot)));
  now_->output.users[slot] = count(Counter::DmaWrite);
  return {};
}

Status Emitter::passStripes() {
  const Plan& plan = *now_->plan;
  const int32_t outer = plan.channelsOutside ? plan.channelStripes : plan.positions();
  const int32_t inner = plan.channelsOutside ? plan.positions() : plan.channelStripes;
  for (int32_t o = 0; o < outer; ++o) {
    for (int32_t i = 0; i < inner; ++i) {
      const int32_t position = plan.channelsOutside ? i : o, channel = plan.channelsOutside ? o : i;
      CARINA_RETURN_IF_ERROR(
          passStripe(stripeAt(position / plan.columnStripes, position % plan.columnStripes, channel)));
    }
  }
  return {};
}

/// Emits stripes of a pass of the section up to a count, and the stripes of preceding passes that they need.
Status Emitter::makeRows(size_t pass, int32_t upTo) {
  for (Running& running = section_[pass]; running.made < upTo; ++running.made) {
    if (pass > 0) {
      const Plan& plan = *running.plan;
      const int32_t rows = running.made + (plan.needsBelow ? 2 : 1);
      CARINA_RETURN_IF_ERROR(makeRows(pass - 1, std::min(rows, plan.inputRowStripes)));
    }
    now_ = &running;
    CARINA_RETURN_IF_ERROR(passStripe(stripeAt(running.made, 0, 0)));
  }
  return {};
}

/// Sets up the inputs: their tiles, and when their contents are available.
void Emitter::beginInputs() {
  now_->inputs.clear();
  now_->inputAgents.clear();
  now_->residentsReady = 0;
  for (size_t i = 0; i < now_->pass->inputs.size(); ++i) {
    const FeatureMap& map = now_->pass->inputs[i];
    Tile tile = makeTile(now_->plan->inputs[i]);
    if (now_->plan->chained == static_cast<int32_t>(i)) {
      now_->inputAgents.push_back(0);
    } else if (now_->plan->resident[i]) {
      // What an earlier pass left in SRAM counts as loaded.
      for (size_t slot = 0; slot < tile.keys.size(); ++slot)
        tile.keys[slot] = static_cast<int64_t>(slot) * now_->plan->channelStripes;
      now_->residentsReady = std::max(now_->residentsReady, madeAt_[static_cast<size_t>(map.storage)]);
      now_->inputAgents.push_back(0);
    } else {
      waitForRoom(Queue::DmaRead, tile.plan);
      wait(Queue::DmaRead, Counter::DmaWrite, storedAt_[static_cast<size_t>(map.storage)]);
      now_->inputAgents.push_back(addAgent({streamer(map), {}}));
    }
    now_->inputs.push_back(std::move(tile));
  }
}

/// Sets up the tile of the weights. The first weights are loaded before the inputs, which may have to wait
/// for an earlier pass.
Status Emitter::beginWeights(uint32_t weights) {
  now_->weights = makeTile(now_->plan->weights);
  if (now_->plan->weightsAreThere) {
    now_->weights.keys[0] = 0;
    return {};
  }
  now_->weightAgent = addAgent({WeightStreamer{static_cast<uint16_t>(weights)}, {}});
  TilePlan room = now_->plan->weights;
  if (!now_->plan->together.empty()) room.slotBytes = now_->plan->weightLoadBytes() / variant_.banks();
  waitForRoom(Queue::DmaRead, room);
  CARINA_RETURN_IF_ERROR(loadWeights(stripeAt(0, 0, 0)));
  if (!now_->plan->together.empty()) {
    Until loaded{};
    loaded[static_cast<size_t>(Counter::DmaRead)] = count(Counter::DmaRead);
    uses_.replace(room.address, room.address + room.slotBytes, loaded);
  }
  return {};
}

/// Records until when the tiles of the pass are in use.
void Emitter::noteUses() {
  Until until{};
  const auto use = [&](Counter counter) { until[static_cast<size_t>(counter)] = count(counter); };
  use(Counter::DmaRead);
  if (now_->pass->kind == PassKind::Mce) use(Counter::MceStripe);
  if (now_->pass->kind == PassKind::Ple) use(Counter::PleStripe);
  if (now_->pass->kind == PassKind::Copy) use(Counter::DmaWrite);
  const auto end = [](const TilePlan& tile) { return tile.address + tile.slotBytes * tile.slots; };
  for (size_t i = 0; i < now_->inputs.size(); ++i) {
    const TilePlan& tile = now_->plan->inputs[i];
    if (now_->plan->resident[i] || now_->plan->chained == static_cast<int32_t>(i)) {
      uses_.add(tile.address, end(tile), until);
    } else {
      uses_.replace(tile.address, end(tile), until);
    }
  }
  if (now_->pass->kind == PassKind::Mce)
    uses_.add(now_->plan->weights.address, end(now_->plan->weights), until);
  const auto made = static_cast<size_t>(now_->pass->output.storage);
  if (now_->plan->stored) storedAt_[made] = count(Counter::DmaWrite);
  if (now_->pass->kind == PassKind::Copy) return;
  madeAt_[made] = count(Counter::PleStripe);
  until = {};
  use(Counter::PleStripe);
  if (now_->plan->stored) use(Counter::DmaWrite);
  uses_.replace(now_->plan->output.address, end(now_->plan->output), until);
}

Status Emitter::begin(const Job& job) {
  now_->pass = job.pass;
  now_->plan = job.plan;
  if (job.pass->kind == PassKind::Mce) CARINA_RETURN_IF_ERROR(beginWeights(job.weights));
  beginInputs();
  if (job.pass->kind != PassKind::Copy) {
    now_->output = makeTile(job.plan->output);
    const std::optional<uint16_t> kernel = pleKernelId(*variant_.kernels, job.plan->kernel);
    CARINA_CHECK(kernel.has_value(), "the compiler asks only for existing kernels");
    now_->kernel = *kernel;
    loadKernel();
    waitForRoom(Queue::Ple, job.plan->output);
  }
  if (job.plan->stored) {
    Agent::Ofm out;
    static_cast<TensorStreamer&>(out) = streamer(job.pass->output);
    now_->outputAgent = addAgent({out, {}});
  }
  return {};
}

Result<std::vector<uint32_t>> Emitter::emit(std::span<const Job> section) {
  std::vector<uint32_t> firstAgents;
  section_.assign(section.size(), {});
  for (size_t i = 0; i < section.size(); ++i) {
    firstAgents.push_back(agents());
    now_ = &section_[i];
    CARINA_RETURN_IF_ERROR(begin(section[i]));
  }
  if (section.size() == 1) {
    CARINA_RETURN_IF_ERROR(passStripes());
  } else {
    CARINA_RETURN_IF_ERROR(makeRows(section.size() - 1, section.back().plan->rowStripes));
  }
  for (Running& running : section_) {
    now_ = &running;
    noteUses();
  }
  // Only the last place is reserved for code: tiles of later passes may occupy the others.
  const int64_t kept = target_.bankBytes() - kPleKernelMaxBytes;
  std::erase_if(kernelsInSram_, [kept](const auto& kernel) { return kernel.first != kept; });
  return firstAgents;
}

}  // namespace carina::ethosn::compiler
