// SPDX-License-Identifier: Apache-2.0
// Runs compiled networks of Ethos-N78 on the host: the four command lists with their counters, DMA, MCE and
// PLE kernels. Results are exact except for what is not public about the hardware; `assumptions` lists what
// was assumed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "base/work_budget.hpp"
#include "ethosn/stream/compiled_network.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// What is not public about the hardware, and what the model assumes. docs/ethos-n.md describes each in
/// detail.
enum class Assumption : uint8_t {
  MceRounding,     // results of the MCE are rounded half up; accumulators have 32 bits
  Winograd,        // Winograd convolutions are computed exactly
  BilinearResize,  // bilinear up-sampling: mean of the neighbours, half up, the last row and column repeated
  SigmoidTables,   // EXP2 and RCP of the PLE round to nearest
  PaddedMaxPool,   // max pooling ignores what lies outside the tensor
  FcafUncompressed,  // compressed feature maps are kept uncompressed in the space of their cells
};
inline constexpr size_t kAssumptions = 6;
const char* assumptionText(Assumption assumption);

struct RunOptions {
  /// Which list proceeds if several can: 0 alternates between them, any other value is the seed of a random
  /// choice.
  uint64_t order = 0;
  /// False: commands are executed without their sums, so results are meaningless; for checks.
  bool arithmetic = true;
  /// Look for memory accesses that no wait orders.
  bool hazards = true;
  /// Charged for the work; null: a budget that depends on the size of the network.
  WorkBudget* budget = nullptr;
};

/// What one agent did. Cycles are those of the public formulas, stripe by stripe.
struct AgentStats {
  uint32_t stripes = 0;  // for a streamer: commands
  uint64_t bytes = 0;    // moved between DRAM and SRAM
  uint64_t macs = 0, cycles = 0;
  uint64_t patches = 0;  // of the PLE, see plePatches()
};

struct RunStats {
  std::vector<AgentStats> agents;
  std::array<uint32_t, kCounters> counters{};  // at the end
  int64_t sramBytes = 0;                       // all banks, up to the highest address in use
  uint64_t readBytes = 0, writtenBytes = 0;    // DRAM
  uint64_t macs = 0, mceCycles = 0, pleCycles = 0;
  uint64_t cycles =
      0;  // from the first command to the end of the last, overlapping as the waits allow (timeline.hpp)
};

/// A fault after which the model can continue.
struct Finding {
  Queue queue = Queue::DmaRead;
  size_t command = 0;  // in the queue
  size_t offset = 0;   // bytes from the beginning of the command stream
  std::string message;
  std::string str() const;  // "list mce, command 3 (offset 0x1a0): ..."
};

struct RunResult {
  std::vector<std::vector<uint8_t>> outputs;  // in the order of CompiledNetwork::outputs
  std::vector<Finding> findings;              // at most kMaxFindings
  std::vector<Assumption> assumptions;        // that results depend on
  RunStats stats;
};
inline constexpr size_t kMaxFindings = 100;

/// The variant for which a stream was compiled, according to its PLE kernels; null if it uses none. Fails on
/// unknown kernels and on kernels of several families.
Result<const Variant*> variantOf(const CommandStream& stream);

/// The variant with the largest SRAM that it can be built with: a network does not record the size for which
/// it was compiled.
Target largestTarget(const Variant& variant);

/// Runs a network once. `inputs` are in the order of CompiledNetwork::inputs, each of exactly the size in the
/// table. Fails on what the hardware could not do: addresses outside SRAM or buffers, queues that wait
/// forever, weight streams that cannot be decoded, parameters that match no kernel.
Result<RunResult> runNetwork(const CompiledNetwork& network, std::span<const ByteSpan> inputs,
                             const Target& target, const RunOptions& options = {});

}  // namespace carina::ethosn
