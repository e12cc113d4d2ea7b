// SPDX-License-Identifier: Apache-2.0
// The time line of a command stream (timing.hpp): two queues, waits, BLOCKDEP overlap and shared ports.
#include <algorithm>

#include "npu/timing/bandwidth.hpp"
#include "npu/timing/timing.hpp"

namespace carina::npu {

using timing::Queue;

namespace {

/// Cycles that the command processor spends on one command of one or two words.
constexpr Cycles kCommandCycles = 2;

/// How long a kernel stalls because a port accepts no addresses. Between pulses it continues with what the
/// read buffers of its weights hold; its last block is written in a pulse.
Cycles stallBetweenPulses(const Machine& machine, const OperationCost& cost, size_t port, Cycles start) {
  const MemoryTiming& memory = machine.system.ports[port];
  const PortTraffic& traffic = cost.traffic[port];
  const int64_t bytes = traffic.readBytes + traffic.writeBytes;
  if (memory.pulseOff <= 0 || bytes == 0) return 0;
  const Cycles period = Cycles{memory.pulseOn} + memory.pulseOff;
  const double goesOn = timing::readBufferBytes(*machine.target, timing::Channel::Weights) *
                        static_cast<double>(cost.total) / static_cast<double>(bytes);
  const Cycles each = memory.pulseOff - static_cast<Cycles>(std::min<double>(goesOn, memory.pulseOff));
  const Cycles work = period - each;
  Cycles into = (start - memory.firstPulse - memory.pulseOff) % period;  // from the beginning of a pulse
  if (into < 0) into += period;
  Cycles still = 0;
  if (into >= work) {
    still = period - into;
    into = 0;
  }
  const Cycles times = (into + cost.total - 1) / work;
  const Cycles end = into + cost.total - times * work;
  if (traffic.writeBytes > 0 && end > memory.pulseOn) still += period - end;
  constexpr double kMost = 0x1p48;
  return still + static_cast<Cycles>(std::min(static_cast<double>(times) * static_cast<double>(each), kMost));
}

}  // namespace

ScheduledCost Timeline::add(const KernelOperation& operation, const TimingContext& context, uint32_t offset) {
  parser_ += kCommandCycles;
  OperationCost cost = estimate(operation, context);
  const bool chained = operation.ofm.storage == Storage::Chained;
  const bool follows = continuesChain(operation);
  if (!follows) {
    chain_.clear();
    chainContexts_.clear();
  }
  if (follows || chained) {
    chain_.push_back(operation);
    chainContexts_.push_back(context);
    const OperationCost whole = estimateChain(chain_, chainContexts_);
    if (follows) {
      // Its share: the additional time that the chain takes with it.
      cost.total = std::max<Cycles>(whole.total - chainCost_.total, 0);
      cost.npu = std::min(cost.npu, cost.total);
      cost.fill = 0;
    }
    chainCost_ = whole;
  }
  return pushKernel(operation, cost, offset);
}

timing::Arbiter Timeline::arbiter() const {
  return rules_->transfersWait ? timing::Arbiter::KernelsFirst : timing::Arbiter::Alternates;
}

bool Timeline::continuesChain(const KernelOperation& operation) const {
  if (chain_.empty() || chain_.back().ofm.storage != Storage::Chained) return false;
  return operation.ifm.storage == Storage::Chained ||
         (operation.ifm2 && operation.ifm2->storage == Storage::Chained);
}

std::optional<ScheduledCost> Timeline::add(const Operation& operation, uint32_t offset) {
  if (const auto* kernel = std::get_if<KernelOperation>(&operation)) {
    TimingContext context = TimingContext::fromRegions(machine_, *kernel);
    context.rules = rules_;
    return add(*kernel, context, offset);
  }
  parser_ += kCommandCycles;
  if (const auto* dma = std::get_if<DmaOperation>(&operation)) return pushTransfer(*dma, offset);
  if (const auto* kernelWait = std::get_if<KernelWait>(&operation)) {
    waitFor(Queue::Kernels, kernelWait->outstanding);
  } else if (const auto* dmaWait = std::get_if<DmaWait>(&operation)) {
    waitFor(Queue::Transfers, dmaWait->outstanding);
  } else if (std::holds_alternative<Stop>(operation) || std::holds_alternative<Branch>(operation)) {
    waitFor(Queue::Kernels, 0);
    waitFor(Queue::Transfers, 0);
  }
  return std::nullopt;
}

void Timeline::waitFor(Queue queue, int32_t outstanding) {
  parser_ = std::max(parser_, ports_.end(queue, static_cast<size_t>(std::max(outstanding, 0))));
}

ScheduledCost Timeline::pushTransfer(const DmaOperation& operation, uint32_t offset) {
  const OperationCost cost = estimate(operation, machine_);
  waitFor(Queue::Transfers, machine_.target->architecture().outstandingDmas - 1);
  ScheduledCost entry{cost, std::max(parser_, ports_.end(Queue::Transfers)), 0, offset, true};
  // Pulses do not stall transfers: the rate of their channel only counts the share of cycles in which
  // adapters accept addresses (assumption pulsed-transfers, docs/npu-model.md).
  entry.end = ports_.place(Queue::Transfers, {entry.start, entry.start + cost.total, cost.port, entry.start},
                           arbiter());
  count(cost);
  return entry;
}

ScheduledCost Timeline::pushKernel(const KernelOperation& operation, const OperationCost& cost,
                                   uint32_t offset) {
  waitFor(Queue::Kernels, machine_.target->maxOutstandingKernels() - 1);
  // Without BLOCKDEP the operation starts when everything before it has been written. With BLOCKDEP, its
  // first input blocks load while the preceding operation finishes its last ones (assumption
  // blockdep-overlap, docs/npu-model.md).
  const Cycles overlap = rules_->blockdepOverlap
                             ? std::min(cost.fill, previousTail_ * std::max(operation.blockDependency, 0))
                             : 0;
  const Cycles earliest = std::max(parser_, ports_.start(Queue::Kernels));
  const Cycles latestEnd = ports_.end(Queue::Kernels);
  ScheduledCost entry{cost, std::max(earliest, latestEnd - overlap), 0, offset, false};
  if (operation.blockDependency == 0 && latestEnd > earliest) {
    counts_.blockdepStall += std::min(latestEnd - earliest, cost.fill);
  }
  // Members of a chain run block by block together: the traffic of a follower began with the chain.
  const bool follows = chain_.size() > 1;
  if (chain_.size() == 1) chainStart_ = entry.start;
  std::array<Cycles, 2> still{}, work = cost.port;
  for (size_t port = 0; port < still.size(); ++port) {
    still[port] = stallBetweenPulses(machine_, cost, port, entry.start);
    if (work[port] > 0) work[port] += still[port];
  }
  const Cycles end = entry.start + cost.total + std::max(still[0], still[1]);
  entry.end =
      ports_.place(Queue::Kernels, {entry.start, end, work, follows ? chainStart_ : entry.start}, arbiter());
  previousTail_ = cost.drain + cost.total / std::max<int64_t>(cost.blocks, 1);
  if (elementBytes(operation.ifm.type) == 2) counts_.macActive16 += cost.mac;
  count(cost);
  return entry;
}

void Timeline::count(const OperationCost& cost) {
  counts_.macActive += cost.mac;
  counts_.outputActive += cost.output;
  counts_.weightActive += cost.weights;
  for (size_t port = 0; port < 2; ++port) {
    counts_.readBeats[port] += cost.traffic[port].readBytes / machine_.target->architecture().axiBytes;
    counts_.writeBeats[port] += cost.traffic[port].writeBytes / machine_.target->architecture().axiBytes;
    const int64_t burst = std::max(machine_.system.ports[port].burst, 1);
    counts_.readBursts[port] += (cost.traffic[port].readBytes + burst - 1) / burst;
    counts_.writeBursts[port] += (cost.traffic[port].writeBytes + burst - 1) / burst;
  }
}

Cycles Timeline::total() const {
  return std::max({parser_, ports_.end(Queue::Kernels), ports_.end(Queue::Transfers)});
}

PmuCounts Timeline::pmu() const {
  PmuCounts counts = counts_;
  counts.cycles = counts.active = total();
  return counts;
}

uint64_t PmuCounts::event(const Architecture& npu, uint32_t id) const {
  const auto value = [](int64_t v) { return static_cast<uint64_t>(v); };
  switch (id) {
    case 17:
      return value(cycles);
    case 32:
      return value(idle);
    case 33:
      return value(blockdepStall);
    case 35:
      return value(active);
    case 48:
      return value(macActive);
    case 49:  // by element size
      return npu.pmuElementSizes ? value(macActive - macActive16) : 0;
    case 50:
      return npu.pmuElementSizes ? value(macActive16) : 0;
    case 51:
      return value(macActive);
    case 64:
      return value(outputActive);
    case 80:
      return value(weightActive);
    case 128:  // transactions accepted and completed: all of them, by the end of a run
    case 129:
      return value(readBursts[0]);
    case 130:
      return value(readBeats[0]);
    case 132:
    case 133:
      return value(writeBursts[0]);
    case 135:
      return value(writeBeats[0]);
    case 140:
      return value(active);
    case 384:
    case 385:
      return value(readBursts[1]);
    case 388:
    case 389:
      return value(writeBursts[1]);
    case 386:
      return value(readBeats[1]);
    case 391:
      return value(writeBeats[1]);
    case 396:
      return value(active);
    default:
      return 0;
  }
}

}  // namespace carina::npu
