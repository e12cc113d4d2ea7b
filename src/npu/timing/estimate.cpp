// SPDX-License-Identifier: Apache-2.0
// Cycles of one operation (timing.hpp): block-level MAC and output pipeline, then the memory ports.
#include <algorithm>
#include <cmath>

#include "base/shape.hpp"
#include "npu/isa/blockconfig.hpp"
#include "npu/timing/bandwidth.hpp"
#include "npu/timing/output_rate.hpp"
#include "npu/timing/timing.hpp"

namespace carina::npu {
namespace {

using timing::Channel;
using timing::Rules;
using timing::Transfer;

enum class Class : uint8_t { Conv, Depthwise, Pool, ReduceSum, Elementwise, Resize };

Class classOf(const KernelOperation& op) {
  switch (op.kind) {
    case OperationKind::Conv:
      return Class::Conv;
    case OperationKind::Depthwise:
      return Class::Depthwise;
    case OperationKind::Pool:
      return op.pool == PoolMode::ReduceSum ? Class::ReduceSum : Class::Pool;
    case OperationKind::Elementwise:
      return Class::Elementwise;
    case OperationKind::Resize:
      return Class::Resize;
  }
  return Class::Conv;
}

/// Properties of one operation that the formulas share.
struct Shapes {
  Class kind = Class::Conv;
  int64_t ifmHeight = 1, ifmWidth = 1, ifmDepth = 1;
  BlockShape ofmBlock, ifmBlock;          // clipped to the maps
  BlockShape ofmBlockFull, ifmBlockFull;  // as configured
  BlockShape microblock;
  int64_t ifmBits = 8;
  bool readsIfm = true, partKernel = false, sparse = false;
  double blocks = 1;  // fractional number of OFM blocks, by microblocks
};

BlockShape clip(BlockShape block, int64_t h, int64_t w, int64_t c) {
  return {static_cast<int32_t>(std::min<int64_t>(block.h, h)),
          static_cast<int32_t>(std::min<int64_t>(block.w, w)),
          static_cast<int32_t>(std::min<int64_t>(block.c, c))};
}

Shapes shapesOf(const Target& target, const KernelOperation& op) {
  Shapes s;
  s.kind = classOf(op);
  s.ifmBits = elementBytes(op.ifm.type) * 8;
  s.partKernel =
      op.kind == OperationKind::Conv && op.weights && op.weights->traversal == Traversal::PartKernelFirst;
  s.sparse = op.weights && op.weights->sparse;
  s.readsIfm = !(op.kind == OperationKind::Pool && op.pool == PoolMode::None);
  const int64_t up = op.upscale == Upscale::None ? 1 : 2;
  if (s.kind == Class::Elementwise) {
    s.ifmHeight = op.ofm.height;
    s.ifmWidth = op.ofm.width;
    s.ifmDepth = op.ofm.depth;
  } else if (s.kind == Class::Resize) {
    s.ifmHeight = op.ifm.height;
    s.ifmWidth = op.ifm.width;
    s.ifmDepth = op.ofm.depth;
  } else {
    s.ifmHeight = std::max<int64_t>(ceilDiv(op.ifmHeight(), up), 1);
    s.ifmWidth = std::max<int64_t>(ceilDiv(op.ifmWidth(), up), 1);
    s.ifmDepth = s.kind == Class::Conv || s.kind == Class::ReduceSum ? op.ifm.depth : op.ofm.depth;
  }
  s.microblock = target.architecture().choosesMicroblocks ? op.microblock : microblocks(target).front();
  // One row of output: 2x2 microblocks are used as 1x4.
  if (!target.architecture().choosesMicroblocks && s.microblock.h == 2 && s.kind == Class::Conv &&
      op.ofm.height == 1 && op.ofm.width % 2 == 0 && op.kernel.height == 1) {
    s.microblock = {1, 4, 8};
  }
  s.ofmBlockFull = {std::max(op.block.h, 1), std::max(op.block.w, 1), std::max(op.block.c, 1)};
  s.ofmBlock = clip(s.ofmBlockFull, op.ofm.height, op.ofm.width, op.ofm.depth);
  s.ifmBlockFull = BlockRules(target, op).ifmBlock(s.ofmBlockFull);
  s.ifmBlock = clip(s.ifmBlockFull, s.ifmHeight, s.ifmWidth, s.ifmDepth);
  const auto units = [&](int64_t h, int64_t w, int64_t c) {
    return static_cast<double>(ceilDiv(h, s.microblock.h)) * static_cast<double>(ceilDiv(w, s.microblock.w)) *
           static_cast<double>(ceilDiv(c, s.microblock.c));
  };
  s.blocks =
      units(op.ofm.height, op.ofm.width, op.ofm.depth) / units(s.ofmBlock.h, s.ofmBlock.w, s.ofmBlock.c);
  return s;
}

/// MAC steps of one microblock for `taps` taps, `perStep` of them in a step.
double tapSteps(const Target& target, const Rules& rules, int64_t taps, int64_t perStep) {
  const int64_t counted = target.isU85() && rules.u85RealTaps
                              ? std::max(taps, std::min(rules.u85LeastTaps, perStep))
                              : roundUp(taps, perStep);
  return static_cast<double>(counted) / static_cast<double>(perStep);
}

/// U85, depth-first: MAC cycles, of eight channels each, of one microblock and tap for an average input
/// block.
double depthFirstSteps(const Shapes& s, const Rules& rules) {
  int64_t depth = roundUp(s.ifmDepth, rules.u85DepthPadding);
  if (s.sparse) depth = roundUp(ceilDiv(depth, 2), rules.u85DepthPadding);
  const int64_t blocks = ceilDiv(s.ifmDepth, std::max(s.ifmBlock.c, 1));
  return static_cast<double>(depth) / 8.0 / static_cast<double>(blocks);
}

struct MacCycles {
  double block = 0;          // MAC unit, per OFM block
  double weights = 0;        // what the weight decoder alone would need
  bool decodeBound = false;  // the decoder is slower than the multipliers
};

/// MAC cycles of one OFM block: loops over sub-kernels of at most 8x8 taps (4x4 if the kernel specifies it).
MacCycles macCycles(const Target& target, const Rules& rules, const KernelOperation& op, const Shapes& s) {
  const int64_t nuH = ceilDiv(s.ofmBlock.h, s.microblock.h), nuW = ceilDiv(s.ofmBlock.w, s.microblock.w);
  const int64_t z = ceilDiv(s.ofmBlock.c, s.microblock.c), wh = nuH * nuW;
  const bool u85 = target.isU85();
  const int64_t decoders = u85 ? std::max(target.weightStreams, 1) : 1;
  const double weightBound = 32.0 * s.microblock.c / (8.0 * static_cast<double>(decoders));
  const bool wide = op.accumulator != AccumulatorFormat::Int32;
  const bool u55_32 = !u85 && target.macs == 32;
  int64_t delayUnit = 2;
  if (u55_32) {
    delayUnit = wide ? 7 : 3;
  } else if (wide && target.macs <= 128) {
    delayUnit = 3;
  }
  const int64_t bytes = std::max<int64_t>(s.ifmBits / 8, 1);
  const int64_t ifmSteps = ceilDiv(s.ifmBlock.c, 8);
  MacCycles total;
  const int64_t side = op.kernel.subKernel;
  for (int64_t ky = 0; ky < op.kernel.height; ky += side) {
    for (int64_t kx = 0; kx < op.kernel.width; kx += side) {
      const int64_t taps =
          std::min<int64_t>(op.kernel.height - ky, side) * std::min<int64_t>(op.kernel.width - kx, side);
      double cycles = 0, decode = 0;
      int64_t steps = 1;
      switch (s.kind) {
        case Class::Pool:
          cycles = static_cast<double>(std::max<int64_t>(4, taps) * wh * z) *
                   timing::poolCyclesPerTap(target, op.ifm.type, rules);
          break;
        case Class::Depthwise:
          steps = ceilDiv(taps, 4);
          decode = weightBound * tapSteps(target, rules, taps, 4) * static_cast<double>(z);
          cycles = std::max(weightBound, static_cast<double>(4 * wh * bytes)) *
                   tapSteps(target, rules, taps, 4) * static_cast<double>(z);
          total.decodeBound = weightBound > static_cast<double>(4 * wh * bytes);
          break;
        default:
          if (s.partKernel) {
            const int64_t tapsPerStep = s.ifmBits == 16 ? 2 : 4;
            steps = ceilDiv(taps, tapsPerStep);
            // Sparse weights skip every second depth step, but never the only one.
            const int64_t padded = u85 ? roundUp(s.ifmBlock.c, rules.u85PartKernelPadding) / 8 : ifmSteps;
            const int64_t depthSteps = u85 && s.sparse ? ceilDiv(padded, 2) : padded;
            const double repeat =
                tapSteps(target, rules, taps, tapsPerStep) * static_cast<double>(z * depthSteps);
            decode = weightBound * repeat;
            cycles = std::max(weightBound, static_cast<double>(4 * wh)) * repeat;
            total.decodeBound = weightBound > static_cast<double>(4 * wh);
          } else {
            steps = taps;
            const auto repeat = static_cast<double>(steps * z);
            decode = weightBound * repeat;
            const double multiply =
                u85 ? depthFirstSteps(s, rules) * static_cast<double>(wh) : static_cast<double>(4 * wh);
            cycles = std::max(weightBound, multiply) * repeat;
            total.decodeBound = weightBound > multiply;
            if (u85) cycles *= static_cast<double>(bytes);
          }
          break;
      }
      double delay = 0;
      if (wh == 1) {
        delay = z == 1      ? static_cast<double>(delayUnit * steps)
                : steps > 1 ? static_cast<double>(delayUnit * (steps - 1) * z)
                            : 0.0;
      }
      if (u55_32 && wide && (nuW == 1 || nuH == 1) && z > 1) delay += static_cast<double>(delayUnit * z);
      if (s.partKernel) delay *= static_cast<double>(ifmSteps);
      total.block += cycles + delay;
      total.weights += decode;
    }
  }
  if (s.kind == Class::Conv || s.kind == Class::ReduceSum) {
    const auto repeats = static_cast<double>(ceilDiv(s.ifmDepth, std::max(s.ifmBlock.c, 1)));
    total.block *= repeats;
    total.weights *= repeats;
  }
  if (!u85) {
    total.block /= std::max(target.cores, 1);
    total.weights /= std::max(target.cores, 1);
  }
  total.block = std::floor(total.block);
  return total;
}

/// Accumulates the traffic through the ports, per channel.
class PortLoad {
 public:
  PortLoad(const Machine& machine, OperationCost& cost) : machine_(machine), cost_(cost) {}

  void read(Area area, Transfer transfer, Channel channel) { add(area, transfer, channel); }
  void write(Area area, Transfer transfer) { add(area, transfer, Channel::Write); }
  /// `bytes` contiguous bytes, in whole bursts.
  void read(Area area, int64_t bytes, Channel channel) {
    add(area, {bytes, machine_.timing(area).burst}, channel);
  }
  void write(Area area, int64_t bytes) { add(area, {bytes, machine_.timing(area).burst}, Channel::Write); }

  void finish() {
    for (size_t port = 0; port < 2; ++port) {
      const MemoryTiming& memory = machine_.system.ports[port];
      const auto bytes = static_cast<double>(cost_.traffic[port].readBytes + cost_.traffic[port].writeBytes);
      double cycles = bytes / timing::portBandwidth(*machine_.target, memory);
      if (machine_.target->architecture().channelBuffers) {
        for (const double channel : channels_[port]) cycles = std::max(cycles, channel);
      }
      cost_.port[port] = static_cast<Cycles>(cycles);
    }
  }
  int64_t weightBytes(size_t port) const { return weights_[port]; }
  /// Cycles that one channel takes, and those of the reads of all channels.
  double channel(size_t port, Channel channel) const { return channels_[port][static_cast<size_t>(channel)]; }
  double reads(size_t port) const {
    return static_cast<double>(cost_.traffic[port].readBytes) /
           timing::portBandwidth(*machine_.target, machine_.system.ports[port]);
  }

 private:
  void add(Area area, Transfer transfer, Channel channel) {
    const int64_t bytes = transfer.bytes;
    const uint8_t port = machine_.memory.port(area);
    PortTraffic& traffic = cost_.traffic[port];
    (channel == Channel::Write ? traffic.writeBytes : traffic.readBytes) += bytes;
    if (channel == Channel::Weights || channel == Channel::FastWeights) weights_[port] += bytes;
    channels_[port][static_cast<size_t>(channel)] += std::floor(
        static_cast<double>(bytes) /
        timing::channelBandwidth(*machine_.target, machine_.system.ports[port], channel, transfer.run));
  }

  const Machine& machine_;
  OperationCost& cost_;
  std::array<std::array<double, 7>, 2> channels_{};
  std::array<int64_t, 2> weights_{};
};

int64_t storedDepth(const FeatureMap& map, int64_t depth) {
  return map.layout == Layout::NHCWB16 ? roundUp(depth, 16) : depth;
}

/// The depth that is moved through a port: with exact bytes, it excludes the part of a brick beyond the map's
/// depth.
int64_t movedDepth(const Target& target, const Rules& rules, const FeatureMap& map, int64_t depth) {
  return rules.exactBytes && target.architecture().exactPortBytes ? depth : storedDepth(map, depth);
}

/// How often the input is read for `outputBlocks` output depth blocks: U85 keeps its first depth steps.
double depthReads(const Target& target, const Rules& rules, int64_t outputBlocks, int64_t depthSteps) {
  if (!target.isU85()) return static_cast<double>(outputBlocks);
  const int64_t again = depthSteps - std::min(depthSteps, rules.u85ResidentDepthSteps);
  return static_cast<double>(depthSteps + (outputBlocks - 1) * again) / static_cast<double>(depthSteps);
}

/// The cycles and traffic of one operation, computed step by step: later steps use the results of earlier
/// ones.
class OperationEstimate {
 public:
  OperationEstimate(const KernelOperation& op, const TimingContext& context)
      : op_(op),
        context_(context),
        machine_(*context.machine),
        target_(*machine_.target),
        rules_(*context.rules),
        shapes_(shapesOf(target_, op)),
        elementwise_(shapes_.kind == Class::Elementwise),
        binary_(elementwise_ && op.ifm2 && !isUnary(op.elementwise.mode)),
        writes_(op.accumulatorOutput && inMemory(op.ofm)),
        macOp_(shapes_.kind == Class::Conv || shapes_.kind == Class::Depthwise),
        ofmElements_(int64_t{op.ofm.height} * op.ofm.width * op.ofm.depth),
        taps_(int64_t{op.kernel.height} * op.kernel.width),
        weightCount_(macOp_ ? taps_ * op.ofm.depth * (shapes_.kind == Class::Conv ? shapes_.ifmDepth : 1)
                            : 0),
        rate_(timing::outputCyclesPerElement(target_, op) + context.chainedRate),
        slices_(target_.isU85() && rules_.u85DepthwiseSlices && shapes_.kind == Class::Depthwise
                    ? static_cast<double>(ceilDiv(shapes_.ofmBlock.c, shapes_.microblock.c))
                    : 1.0) {}

  OperationCost cost() {
    fillAndDrain();
    sizesOfStreams();
    if (elementwise_ || shapes_.kind == Class::Resize)
      elements();
    else
      blocks();
    if (macOp_) multiplications();
    result_.firstBlock = result_.fill + static_cast<Cycles>(macBlock_ + outBlock_);
    PortLoad load(machine_, result_);
    if (elementwise_)
      elementwiseInputs(load);
    else
      input(load);
    otherTraffic(load);
    load.finish();
    result_.withPorts = portEnds(load);
    result_.total = std::max({result_.npu, result_.port[0], result_.port[1], result_.withPorts});
    result_.bound = boundBy(load);
    return result_;
  }

 private:
  /// Cycles of the first input block or the last output block, including the latency of its memory.
  double latencyOf(const FeatureMap& map, Area area, int64_t width, int64_t depth, BlockShape clipped,
                   BlockShape full, bool write) const {
    const MemoryTiming& memory = machine_.timing(area);
    const int64_t bytes =
        timing::mapTransfer(target_, rules_, map, width, depth, clipped.elements(), full, memory.burst, write)
            .bytes;
    return (write ? memory.writeLatency : memory.readLatency) +
           std::floor(static_cast<double>(bytes) / timing::portBandwidth(target_, memory));
  }

  void fillAndDrain() {
    const bool ifmScalar = op_.elementwise.ifmBroadcast.scalar,
               ifm2Scalar = op_.elementwise.ifm2Broadcast.scalar;
    if (shapes_.readsIfm && inMemory(op_.ifm) && !(elementwise_ && ifmScalar)) {
      fill_ = latencyOf(op_.ifm, context_.ifm, shapes_.ifmWidth, shapes_.ifmDepth, shapes_.ifmBlock,
                        shapes_.ifmBlockFull, false);
    }
    if (op_.ifm2 && (binary_ || op_.accumulatorInput == AccumulatorInput::Ifm2) && inMemory(*op_.ifm2) &&
        !ifm2Scalar) {
      const FeatureMap& map = *op_.ifm2;
      const Broadcast& b = op_.elementwise.ifm2Broadcast;
      const BlockShape own{b.h ? 1 : shapes_.ofmBlock.h, b.w ? 1 : shapes_.ofmBlock.w,
                           b.c ? 1 : shapes_.ofmBlock.c};
      fill_ = std::max(fill_, latencyOf(map, context_.ifm2, b.w ? 1 : op_.ofm.width, b.c ? 1 : op_.ofm.depth,
                                        own, own, false));
    }
    if (writes_) {
      const auto drainOf = [&](BlockShape clipped, BlockShape full) {
        const bool permuted = op_.transpose != Transpose::HWC;
        return latencyOf(op_.ofm, context_.ofm, permuted ? op_.ofm.width0 : op_.ofm.width, op_.ofm.depth,
                         clipped, full, true);
      };
      drain_ = lastDrain_ = drainOf(shapes_.ofmBlock, shapes_.ofmBlockFull);
      if (slices_ > 1) {
        BlockShape slice = shapes_.ofmBlock;
        slice.c = shapes_.microblock.c;
        lastDrain_ = drainOf(slice, slice);
      }
    }
    result_.fill = static_cast<Cycles>(fill_);
    result_.drain = static_cast<Cycles>(lastDrain_);
    result_.blocks = ceilDiv(op_.ofm.height, shapes_.ofmBlockFull.h) *
                     ceilDiv(op_.ofm.width, shapes_.ofmBlockFull.w) *
                     ceilDiv(op_.ofm.depth, shapes_.ofmBlockFull.c);
  }

  void sizesOfStreams() {
    if (!op_.weights) return;
    int64_t streams = 0, scales = 0;
    for (const AddressRange& range : op_.weights->weights) streams += static_cast<int64_t>(range.length);
    for (const AddressRange& range : op_.weights->scales) scales += static_cast<int64_t>(range.length);
    weightBytes_ = context_.weightBytes >= 0 ? context_.weightBytes : streams > 0 ? streams : weightCount_;
    scaleBytes_ = context_.scaleBytes >= 0 ? context_.scaleBytes
                  : scales > 0             ? scales
                                           : 10 * int64_t{op_.ofm.depth};
  }

  /// Elementwise operations and RESIZE: rate_ cycles per element.
  void elements() {
    const bool realDepth = elementwise_ && target_.isU85() && rules_.u85RealElementwiseDepth;
    const int64_t depth = realDepth ? op_.ofm.depth : storedDepth(op_.ofm, op_.ofm.depth);
    int64_t n = int64_t{op_.ofm.height} * op_.ofm.width * depth;
    if (elementwise_ && rules_.elementwiseMicroblocks) {
      n = roundUp(op_.ofm.height, shapes_.microblock.h) * roundUp(op_.ofm.width, shapes_.microblock.w) *
          roundUp(depth, shapes_.microblock.c);
    }
    const auto blockElements = static_cast<double>(std::max<int64_t>(shapes_.ofmBlockFull.elements(), 1));
    double perElement = rate_;
    if (shapes_.kind == Class::Resize) {
      // Assumption resize-rate: the interpolation reads four inputs per output through the elementwise path.
      perElement = std::max(rate_, 4.0 * 16.0 / static_cast<double>(target_.macs));
    }
    const double output = std::ceil(perElement * static_cast<double>(n));
    const double command =
        std::ceil(static_cast<double>(n) * (std::max(fill_, drain_) / blockElements + perElement) / 4.0);
    result_.output = static_cast<Cycles>(output);
    result_.npu = static_cast<Cycles>(std::max(output, command));
    if (elementwise_ && rules_.elementwiseFills) result_.npu += result_.fill + result_.drain;
    commandBound_ = command > output;
    outputBound_ = true;
    outBlock_ = perElement * static_cast<double>(shapes_.ofmBlock.elements());
  }

  /// All others: the MAC array and the output unit form a pipeline over blocks.
  void blocks() {
    const MacCycles mac = macCycles(target_, rules_, op_, shapes_);
    macBlock_ = mac.block;
    weightBlock_ = mac.weights;
    decodeBound_ = mac.decodeBound;
    outBlock_ = std::ceil(rate_ * static_cast<double>(shapes_.ofmBlock.elements()));
    if (op_.weights && macOp_ && !op_.globalScale) {
      outBlock_ = std::max(outBlock_, std::floor(10.0 * shapes_.ofmBlock.c *
                                                 machine_.timing(context_.scales).readLatency / 256.0));
    }
    const double wait = shapes_.blocks > 1 ? std::abs(drain_ - fill_) : 0;
    const double command = std::floor((wait + macBlock_ + outBlock_) / 4.0);
    const double b = std::max(macBlock_, command), a = std::max(outBlock_, command);
    double total =
        b > a ? std::floor(b * shapes_.blocks) + a / slices_ : std::floor(a * shapes_.blocks + b / slices_);
    total += lastDrain_ + fill_;
    result_.npu = static_cast<Cycles>(total);
    result_.mac = static_cast<Cycles>(macBlock_ * shapes_.blocks);
    result_.output = static_cast<Cycles>(outBlock_ * shapes_.blocks);
    commandBound_ = command >= std::max(macBlock_, outBlock_);
    outputBound_ = a >= b;
  }

  void multiplications() {
    const int64_t perOutput = taps_ * (shapes_.kind == Class::Conv ? shapes_.ifmDepth : 1);
    result_.macs = perOutput * ofmElements_;
    const double refetch = static_cast<double>(ceilDiv(op_.ofm.height, shapes_.ofmBlockFull.h) *
                                               ceilDiv(op_.ofm.width, shapes_.ofmBlockFull.w));
    if (target_.isU85() && op_.weights) {
      // Decoder rate: 8 to 32 weights per cycle and decoder, depending on the share of zeros; fast format: 32
      // in total.
      const double zeros = std::clamp(context_.zeroWeights >= 0 ? context_.zeroWeights : 0.5, 0.5, 0.9);
      const double perCycle = op_.weights->fastFormat ? 32.0
                                                      : std::floor(8.0 + (zeros - 0.5) * 24.0 / 0.4) *
                                                            std::max(target_.weightStreams, 1);
      result_.weights = static_cast<Cycles>(static_cast<double>(weightCount_) * refetch / perCycle);
    } else {
      result_.weights = static_cast<Cycles>(weightBlock_ * shapes_.blocks);
    }
  }

  /// When the last block is written if a port is the bottleneck, including the blocks before and after the
  /// port's busy cycles; 0 if that does not apply.
  Cycles portEnds(const PortLoad& load) const {
    if (!target_.isU85() || !rules_.u85PortEnds || elementwise_ || shapes_.kind == Class::Resize) return 0;
    const double first = fill_ + (macBlock_ + outBlock_) / slices_;
    const double last = outBlock_ / slices_ + lastDrain_;
    // Work that follows the last input read: the last depth step of its block. Weights are used as they
    // arrive.
    const double lastStep =
        shapes_.kind == Class::Depthwise
            ? macBlock_ / slices_
            : macBlock_ / static_cast<double>(countOf(shapes_.ifmDepth, shapes_.ifmBlock.c));
    double end = 0;
    const auto add = [&](double busy, double around) {
      if (busy > 0) end = std::max(end, busy + around);
    };
    for (size_t port = 0; port < 2; ++port) {
      add(load.channel(port, Channel::Write), first);
      add(load.channel(port, Channel::Ifm), lastStep + last);
      add(load.channel(port, Channel::Weights), last);
      add(load.channel(port, Channel::FastWeights), last);
      add(load.reads(port), last);
    }
    return static_cast<Cycles>(end);
  }

  static int64_t countOf(int64_t size, int64_t block) { return ceilDiv(size, std::max<int64_t>(block, 1)); }

  void elementwiseInputs(PortLoad& load) {
    const auto input = [&](const FeatureMap& map, Area area, const Broadcast& b) {
      if (!inMemory(map) || b.scalar) return;
      int64_t h = op_.ofm.height, w = op_.ofm.width, c = op_.ofm.depth;
      if (target_.architecture().broadcastsBothOperands) {
        h = b.h ? 1 : h;
        w = b.w ? 1 : w;
        c = b.c ? 1 : c;
      }
      const int64_t elements = h * w * movedDepth(target_, rules_, map, c);
      load.read(area,
                timing::mapTransfer(target_, rules_, map, w, c, elements, shapes_.ofmBlockFull,
                                    machine_.timing(area).burst, false),
                Channel::IfmStream);
    };
    input(op_.ifm, context_.ifm, op_.elementwise.ifmBroadcast);
    if (binary_) input(*op_.ifm2, context_.ifm2, op_.elementwise.ifm2Broadcast);
  }

  void input(PortLoad& load) {
    if (!shapes_.readsIfm || !inMemory(op_.ifm)) return;
    int64_t elements;
    if (shapes_.kind == Class::Resize) {
      elements =
          shapes_.ifmHeight * shapes_.ifmWidth * movedDepth(target_, rules_, op_.ifm, shapes_.ifmDepth);
    } else {
      const int64_t repeats = countOf(op_.kernel.width, 8) * countOf(op_.kernel.height, 8);
      const bool reduces = shapes_.kind == Class::Conv || shapes_.kind == Class::ReduceSum;
      const int64_t once = int64_t{shapes_.ifmBlock.h} * shapes_.ifmBlock.w *
                           movedDepth(target_, rules_, op_.ifm, shapes_.ifmDepth) * repeats *
                           countOf(op_.ofm.height, shapes_.ofmBlock.h) *
                           countOf(op_.ofm.width, shapes_.ofmBlock.w);
      const double reads = reduces ? depthReads(target_, rules_, countOf(op_.ofm.depth, shapes_.ofmBlock.c),
                                                countOf(shapes_.ifmDepth, shapes_.ifmBlock.c))
                                   : 1.0;
      elements = static_cast<int64_t>(static_cast<double>(once) * reads);
    }
    load.read(context_.ifm,
              timing::mapTransfer(target_, rules_, op_.ifm, shapes_.ifmWidth, shapes_.ifmDepth, elements,
                                  shapes_.ifmBlockFull, machine_.timing(context_.ifm).burst, false),
              shapes_.kind == Class::Resize ? Channel::IfmStream : Channel::Ifm);
  }

  void otherTraffic(PortLoad& load) {
    if (!elementwise_ && op_.ifm2 && inMemory(*op_.ifm2) &&
        (op_.weightsFromIfm2 || op_.accumulatorInput == AccumulatorInput::Ifm2)) {
      const int64_t elements = op_.weightsFromIfm2 ? int64_t{op_.ofm.depth} * op_.ifm.depth : ofmElements_;
      load.read(context_.ifm2, elements * elementBytes(op_.ifm2->type), Channel::IfmStream);
    }
    if (writes_) {
      const int64_t elements =
          int64_t{op_.ofm.height} * op_.ofm.width * movedDepth(target_, rules_, op_.ofm, op_.ofm.depth);
      load.write(context_.ofm,
                 timing::mapTransfer(target_, rules_, op_.ofm, op_.ofm.width, op_.ofm.depth, elements,
                                     shapes_.ofmBlockFull, machine_.timing(context_.ofm).burst, true));
    }
    if (op_.weights) {
      const int64_t refetch =
          countOf(op_.ofm.height, shapes_.ofmBlock.h) * countOf(op_.ofm.width, shapes_.ofmBlock.w);
      if (macOp_ && !op_.weightsFromIfm2) {
        load.read(context_.weights, refetch * weightBytes_,
                  op_.weights->fastFormat ? Channel::FastWeights : Channel::Weights);
      }
      if (!op_.globalScale) load.read(context_.scales, refetch * scaleBytes_, Channel::Scales);
    }
  }

  BoundBy boundBy(const PortLoad& load) const {
    if (result_.total > result_.npu) {
      const size_t port = result_.port[0] >= result_.port[1] ? 0 : 1;
      const PortTraffic& traffic = result_.traffic[port];
      return 2 * load.weightBytes(port) > traffic.readBytes + traffic.writeBytes ? BoundBy::Weights
                                                                                 : BoundBy::Memory;
    }
    if (commandBound_ || 2 * (fill_ + drain_) > static_cast<double>(result_.npu)) return BoundBy::Latency;
    if (outputBound_) return BoundBy::Output;
    return decodeBound_ && macOp_ ? BoundBy::Weights : BoundBy::Mac;
  }

  const KernelOperation& op_;
  const TimingContext& context_;
  const Machine& machine_;
  const Target& target_;
  const Rules& rules_;
  const Shapes shapes_;
  const bool elementwise_, binary_, writes_, macOp_;
  const int64_t ofmElements_, taps_, weightCount_;
  const double rate_;    // output cycles per element
  const double slices_;  // of a block, which the output unit processes one by one
  OperationCost result_;
  double fill_ = 0, drain_ = 0, lastDrain_ = 0, macBlock_ = 0, outBlock_ = 0, weightBlock_ = 0;
  int64_t weightBytes_ = 0, scaleBytes_ = 0;
  bool commandBound_ = false, outputBound_ = false, decodeBound_ = false;
};

}  // namespace

const char* boundByName(BoundBy bound) {
  switch (bound) {
    case BoundBy::Mac:
      return "MAC";
    case BoundBy::Weights:
      return "weights";
    case BoundBy::Output:
      return "output";
    case BoundBy::Memory:
      return "memory";
    case BoundBy::Latency:
      return "latency";
    case BoundBy::Dma:
      return "DMA";
  }
  return "?";
}

TimingContext TimingContext::fromRegions(const Machine& machine, const KernelOperation& op) {
  const auto area = [](uint8_t region) {
    return region == 0 ? Area::Constants : region == 2 ? Area::Cache : Area::Arena;
  };
  TimingContext context;
  context.machine = &machine;
  context.ifm = area(op.ifm.region);
  if (op.ifm2) context.ifm2 = area(op.ifm2->region);
  context.ofm = area(op.ofm.region);
  if (op.weights) {
    context.weights = area(op.weights->weightRegion);
    context.scales = area(op.weights->scaleRegion);
  }
  return context;
}

OperationCost estimate(const KernelOperation& op, const TimingContext& context) {
  return OperationEstimate(op, context).cost();
}

OperationCost estimateChain(std::span<const KernelOperation> chain, std::span<const TimingContext> contexts) {
  TimingContext head = contexts.front();
  for (const KernelOperation& follower : chain.subspan(1)) {
    head.chainedRate += timing::outputCyclesPerElement(*head.machine->target, follower);
  }
  OperationCost cost = estimate(chain.front(), head);
  for (size_t i = 1; i < chain.size(); ++i) {
    const OperationCost follower = estimate(chain[i], contexts[i]);
    for (size_t port = 0; port < 2; ++port) {
      cost.port[port] += follower.port[port];
      cost.traffic[port].readBytes += follower.traffic[port].readBytes;
      cost.traffic[port].writeBytes += follower.traffic[port].writeBytes;
    }
    // Only the last member's blocks drain to memory; inputs of followers load while the head computes.
    cost.npu += follower.drain;
    cost.drain += follower.drain;
    cost.fill = std::max(cost.fill, follower.fill);
  }
  cost.total = std::max({cost.npu, cost.port[0], cost.port[1], cost.withPorts});
  if (cost.total > cost.npu) cost.bound = BoundBy::Memory;
  return cost;
}

Cycles transferCycles(const Machine& machine, int64_t bytes, Area from, Area to) {
  const MemoryTiming &source = machine.timing(from), &destination = machine.timing(to);
  const double read = static_cast<double>(bytes) /
                      timing::channelBandwidth(*machine.target, source, Channel::Mem2Mem, source.burst);
  const double write =
      static_cast<double>(bytes) /
      timing::channelBandwidth(*machine.target, destination, Channel::Write, destination.burst);
  return std::max(static_cast<Cycles>(read) + source.readLatency,
                  static_cast<Cycles>(write) + destination.writeLatency);
}

OperationCost estimate(const DmaOperation& op, const Machine& machine) {
  const auto area = [](const DmaEnd& end) {
    return end.region == 0 ? Area::Constants : end.region == 2 ? Area::Cache : Area::Arena;
  };
  OperationCost cost;
  const int64_t runs = int64_t{std::max(op.size0, 1)} *
                       (op.dimensions >= 3 || op.destinationDimensions >= 3 ? std::max(op.size1, 1) : 1);
  const bool many =
      op.dimensions >= 2 || op.destinationDimensions >= 2 || op.source.indexed || op.destination.indexed;
  const int64_t count = many ? runs : 1;
  const auto length = static_cast<int64_t>(std::min<uint64_t>(op.length, uint64_t{1} << 40));
  PortLoad load(machine, cost);
  Cycles read = 0, write = 0;
  // Every run ends in a partial burst.
  const auto moved = [&](const MemoryTiming& memory) {
    return count == 1 ? length : count * roundUp(length, std::max(memory.burst / 4, 1));
  };
  if (!op.source.internal) {
    const MemoryTiming& memory = machine.timing(area(op.source));
    load.read(area(op.source), moved(memory), Channel::Mem2Mem);
    read = static_cast<Cycles>(
               static_cast<double>(moved(memory)) /
               timing::channelBandwidth(*machine.target, memory, Channel::Mem2Mem, memory.burst)) +
           memory.readLatency;
  }
  if (op.source.indexed || op.destination.indexed) load.read(Area::Arena, count * 4, Channel::Mem2Mem);
  if (!op.destination.internal) {
    const MemoryTiming& memory = machine.timing(area(op.destination));
    load.write(area(op.destination), moved(memory));
    write =
        static_cast<Cycles>(static_cast<double>(moved(memory)) /
                            timing::channelBandwidth(*machine.target, memory, Channel::Write, memory.burst)) +
        memory.writeLatency;
  }
  load.finish();
  cost.npu = std::max(read, write);
  cost.total = std::max({cost.npu, cost.port[0], cost.port[1]});
  cost.blocks = count;
  cost.bound = BoundBy::Dma;
  return cost;
}

}  // namespace carina::npu
