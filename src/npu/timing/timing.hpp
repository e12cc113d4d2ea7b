// SPDX-License-Identifier: Apache-2.0
// Cycle estimates: per operation from block-level MAC, output, weight, DMA and memory-port models with
// overlap, and for a whole command stream. Formulas: ethosu-architecture section 4, with the additions that
// docs/npu-model.md describes. The compiler's block search and scheduler, the model's PMU and the profile
// reports all use this one model.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/timing/calibration.hpp"
#include "npu/timing/shared_ports.hpp"

namespace carina::npu {

using Cycles = int64_t;

/// What limits an operation.
enum class BoundBy : uint8_t {
  Mac,      // multiply-accumulate units
  Weights,  // weight decoding or fetching
  Output,   // scaling, activation, elementwise unit
  Memory,   // feature map traffic through a port
  Latency,  // block start-up (memory latency, command issue)
  Dma,      // a transfer
};
const char* boundByName(BoundBy bound);  // "MAC", "weights", "output", "memory", "latency", "DMA"

/// Where the data of an operation resides, and the size of its encoded weights.
struct TimingContext {
  const Machine* machine = nullptr;
  Area ifm = Area::Arena, ifm2 = Area::Arena, ofm = Area::Arena;
  Area weights = Area::Constants, scales = Area::Constants;
  /// Encoded bytes of all weight streams and of the scale streams of this operation; negative: taken from the
  /// operation's stream lengths, or estimated (one byte per weight) if it has none.
  int64_t weightBytes = -1, scaleBytes = -1;
  /// Share of zero weights (0..1), for the decoder's rate on U85; negative: unknown.
  double zeroWeights = -1;
  /// Output cycles per element of the elementwise operations chained to this one (U85).
  double chainedRate = 0;
  const timing::Rules* rules = &timing::kCalibrated;

  /// Areas from the regions in the operation: 0 constants, 2 cache, others arena.
  static TimingContext fromRegions(const Machine& machine, const KernelOperation& op);
};

/// Bytes moved through one AXI port group (on U55, partial bursts count as whole bursts).
struct PortTraffic {
  int64_t readBytes = 0, writeBytes = 0;
};

struct OperationCost {
  Cycles total = 0;              // of the operation alone: max of npu, every port and withPorts
  Cycles npu = 0;                // MAC and output pipeline with fill and drain
  Cycles mac = 0;                // MAC unit busy
  Cycles output = 0;             // output (AO) unit busy
  Cycles weights = 0;            // weight decoder busy
  std::array<Cycles, 2> port{};  // busy cycles of AXI0/SRAM and AXI1/EXT
  Cycles withPorts = 0;          // if a port is the bottleneck: its busy cycles plus the first and last block
  std::array<PortTraffic, 2> traffic{};
  Cycles fill = 0;        // latency of the first input block
  Cycles drain = 0;       // latency of the last output block
  Cycles firstBlock = 0;  // until the first output block is complete
  int64_t macs = 0;       // useful multiply-accumulates
  int64_t blocks = 0;     // OFM blocks
  BoundBy bound = BoundBy::Mac;
};

/// One kernel operation. op.block (and op.microblock on U85) must be set.
OperationCost estimate(const KernelOperation& op, const TimingContext& context);
/// A U85 chain: a kernel operation and the elementwise operations that read its blocks from chaining buffers,
/// all with one block configuration. The output unit works for every member in turn while the multipliers
/// work on the next block; intermediate feature maps cause no traffic.
OperationCost estimateChain(std::span<const KernelOperation> chain, std::span<const TimingContext> contexts);
/// One DMA transfer; internal ends use no port.
OperationCost estimate(const DmaOperation& op, const Machine& machine);
/// Cycles to move `bytes` from one area to another by DMA, without queueing.
Cycles transferCycles(const Machine& machine, int64_t bytes, Area from, Area to);

/// Start and end of an operation in a stream, with DMA and kernel queues, waits and BLOCKDEP overlap.
struct ScheduledCost {
  OperationCost cost;
  Cycles start = 0, end = 0;  // from the start of the stream
  uint32_t offset = 0;        // byte offset of the command in the stream
  bool isDma = false;
};

/// Events as the PMU counts them (ids of ethosu-isa.json), from the totals of a run.
struct PmuCounts {
  Cycles cycles = 0, active = 0, idle = 0, macActive = 0, outputActive = 0, weightActive = 0,
         blockdepStall = 0;
  Cycles macActive16 = 0;  // of macActive: with a 16-bit IFM
  std::array<int64_t, 2> readBeats{}, writeBeats{}, readBursts{}, writeBursts{};
  /// Value of one PMU event, 0 for events that the model does not count.
  uint64_t event(const Architecture& npu, uint32_t id) const;
};

/// Places operations, given in stream order, on the time line.
class Timeline {
 public:
  explicit Timeline(const Machine& machine, const timing::Rules& rules = timing::kCalibrated)
      : machine_(machine), rules_(&rules) {}

  /// `offset`: byte offset of the command. Returns when the kernel or transfer runs; nothing for waits, IRQs
  /// and branches, which only advance the time of the command processor.
  std::optional<ScheduledCost> add(const Operation& operation, uint32_t offset);
  /// The same for a kernel operation with a context that the caller provides.
  ScheduledCost add(const KernelOperation& operation, const TimingContext& context, uint32_t offset);

  /// End of all operations so far.
  Cycles total() const;
  PmuCounts pmu() const;
  const Machine& machine() const { return machine_; }

 private:
  ScheduledCost pushKernel(const KernelOperation& operation, const OperationCost& cost, uint32_t offset);
  ScheduledCost pushTransfer(const DmaOperation& operation, uint32_t offset);
  /// Waits until at most `outstanding` operations of the queue are unfinished.
  void waitFor(timing::Queue queue, int32_t outstanding);
  timing::Arbiter arbiter() const;
  bool continuesChain(const KernelOperation& operation) const;
  void count(const OperationCost& cost);

  Machine machine_;
  const timing::Rules* rules_;
  Cycles parser_ = 0;        // when the command processor is free
  Cycles previousTail_ = 0;  // of the latest kernel operation: its last block and its drain
  timing::SharedPorts ports_;
  // The chain that the latest kernel operation belongs to; empty if its OFM went to memory.
  std::vector<KernelOperation> chain_;
  std::vector<TimingContext> chainContexts_;
  OperationCost chainCost_;
  Cycles chainStart_ = 0;
  PmuCounts counts_;
};

}  // namespace carina::npu
