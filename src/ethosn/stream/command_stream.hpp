// SPDX-License-Identifier: Apache-2.0
// An Ethos-N78 command stream (ENCS 8.0.0): agents, which hold what all stripes of a layer have in common,
// and four lists of commands that the control unit processes in parallel. The compiler produces it, the
// writer and the reader convert it to bytes and back, and disassembler, assembler, checker and model operate
// on it.
//
// Every struct lists its words once, in `words` (or `fields`), in stream order and with the register fields
// of each; all code that iterates over a command uses that list.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "ethosn/stream/registers.hpp"

namespace carina::ethosn {

inline constexpr uint32_t kStreamMajor = 8, kStreamMinor = 0, kStreamPatch = 0;

enum class AgentType : uint32_t {
  IfmStreamer,
  WeightStreamer,
  MceScheduler,
  PleLoader,
  PleScheduler,
  OfmStreamer
};
inline constexpr uint32_t kAgentTypes = 6;
std::string_view agentTypeName(AgentType type);  // "ifm_streamer"

enum class MceOperation : uint8_t { Convolution, Depthwise, FullyConnected };
enum class PleInput : uint8_t { MceAllOgs, MceOneOg, SramOne, SramTwo };

// Agents. `fields(self, visit)` calls visit(name, byte offset in the agent's data, member, register fields).

/// IFM_STREAMER and OFM_STREAMER: `buffer` is the id of a buffer of the network.
struct TensorStreamer {
  uint16_t buffer = 0;
  uint32_t compConfig0 = 0, stride1 = 0;
  friend bool operator==(const TensorStreamer&, const TensorStreamer&) = default;
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("buffer", 0, self.buffer, Fields());
    visit("comp_config0", 4, self.compConfig0, Fields(dma_comp_config0::kAll));
    visit("stride1", 8, self.stride1, Fields(dma_bytes::kAll));
  }
};

struct WeightStreamer {
  uint16_t buffer = 0;
  friend bool operator==(const WeightStreamer&, const WeightStreamer&) = default;
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("buffer", 0, self.buffer, Fields());
  }
};

struct MceScheduler {
  MceOperation operation = MceOperation::Convolution;
  uint16_t pleKernel = 0;
  uint32_t activationConfig = 0, wideKernelControl = 0, filter = 0, ifmZeroPoint = 0, ifmDefaultSlotSize = 0,
           ifmSlotStride = 0, stripeBlockConfig = 0, depthwiseControl = 0, ifmSlotBaseAddress = 0,
           pleMceifConfig = 0;
  friend bool operator==(const MceScheduler&, const MceScheduler&) = default;
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("operation", 0, self.operation, Fields());
    visit("ple_kernel", 2, self.pleKernel, Fields());
    visit("activation_config", 4, self.activationConfig, Fields(activation_config::kAll));
    visit("wide_kernel_control", 8, self.wideKernelControl, Fields(wide_kernel_control::kAll));
    visit("filter", 12, self.filter, Fields(filter::kAll));
    visit("ifm_zero_point", 16, self.ifmZeroPoint, Fields(ifm_zero_point::kAll));
    visit("ifm_default_slot_size", 20, self.ifmDefaultSlotSize, Fields(ifm_default_slot_size::kAll));
    visit("ifm_slot_stride", 24, self.ifmSlotStride, Fields(sram_address::kAll));
    visit("stripe_block_config", 28, self.stripeBlockConfig, Fields(stripe_block_config::kAll));
    visit("depthwise_control", 32, self.depthwiseControl, Fields(depthwise_control::kAll));
    visit("ifm_slot_base_address", 36, self.ifmSlotBaseAddress, Fields(sram_address::kAll));
    visit("ple_mceif_config", 40, self.pleMceifConfig, Fields(ple_mceif_config::kAll));
  }
};

struct PleLoader {
  uint16_t pleKernel = 0;
  friend bool operator==(const PleLoader&, const PleLoader&) = default;
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ple_kernel", 0, self.pleKernel, Fields());
  }
};

struct PleScheduler {
  PleInput input = PleInput::MceAllOgs;
  uint16_t pleKernel = 0;
  uint32_t kernelSramAddress = 0;  // bytes in a bank
  friend bool operator==(const PleScheduler&, const PleScheduler&) = default;
  template <typename Self, typename Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("input", 0, self.input, Fields());
    visit("ple_kernel", 2, self.pleKernel, Fields());
    visit("kernel_sram_address", 4, self.kernelSramAddress, Fields());
  }
};

inline constexpr size_t kAgentDataBytes = 44;

struct Agent {
  struct Ifm : TensorStreamer {
    friend bool operator==(const Ifm&, const Ifm&) = default;
  };
  struct Ofm : TensorStreamer {
    friend bool operator==(const Ofm&, const Ofm&) = default;
  };
  /// In the order of AgentType.
  std::variant<Ifm, WeightStreamer, MceScheduler, PleLoader, PleScheduler, Ofm> data;
  /// The bytes that no field uses. Carina writes zeros; kept so that any file can be reproduced exactly.
  std::array<uint8_t, kAgentDataBytes> unused{};

  AgentType type() const { return static_cast<AgentType>(data.index()); }
  friend bool operator==(const Agent&, const Agent&) = default;
};

// Commands. `words(self, visit)` calls visit(name, span of words, register fields).

enum class CommandType : uint32_t {
  WaitForCounter,
  LoadIfmStripe,
  LoadWeightStripe,
  ProgramMceStripe,
  ConfigMceif,
  StartMceStripe,
  LoadPleCodeIntoSram,
  LoadPleCodeIntoPleSram,
  StartPleStripe,
  StoreOfmStripe,
};
inline constexpr uint32_t kCommandTypes = 10;
std::string_view commandTypeName(CommandType type);  // "load_ifm"

/// What each counter counts from the start of an inference.
enum class Counter : uint32_t {
  DmaRead,        // reads done
  DmaWrite,       // writes done
  Mceif,          // MCEIF configured
  MceStripe,      // MCE stripes done
  PleCodeLoaded,  // PLE kernels in the PLEs' own memory
  PleStripe,      // PLE stripes done
};
inline constexpr uint32_t kCounters = 6;
std::string_view counterName(Counter counter);  // "dma_rd"

struct WaitForCounter {
  uint32_t counter = 0, value = 0;  // Counter
  friend bool operator==(const WaitForCounter&, const WaitForCounter&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("counter", std::span(&self.counter, 1), Fields());
    visit("value", std::span(&self.value, 1), Fields());
  }
};

/// LoadIfmStripe, LoadWeightStripe, LoadPleCodeIntoSram, StoreOfmStripe.
struct DmaCommand {
  CommandType type = CommandType::LoadIfmStripe;
  uint32_t agent = 0, dramOffset = 0, sramAddress = 0, sramStride = 0, stride0 = 0, stride2 = 0, stride3 = 0,
           channels = 0, emcs = 0, totalBytes = 0, cmd = 0;
  friend bool operator==(const DmaCommand&, const DmaCommand&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("agent", std::span(&self.agent, 1), Fields());
    visit("dram_offset", std::span(&self.dramOffset, 1), Fields());
    visit("sram_addr", std::span(&self.sramAddress, 1), Fields(sram_address::kAll));
    visit("sram_stride", std::span(&self.sramStride, 1), Fields(dma_sram_stride::kAll));
    visit("stride0", std::span(&self.stride0, 1), Fields(dma_bytes::kAll));
    visit("stride2", std::span(&self.stride2, 1), Fields(dma_bytes::kAll));
    visit("stride3", std::span(&self.stride3, 1), Fields(dma_bytes::kAll));
    visit("channels", std::span(&self.channels, 1), Fields(dma_channels::kAll));
    visit("emcs", std::span(&self.emcs, 1), Fields());
    visit("total_bytes", std::span(&self.totalBytes, 1), Fields(dma_bytes::kAll));
    visit("cmd", std::span(&self.cmd, 1), Fields(dma_cmd::kAll));
  }
};

struct ProgramMceStripe {
  uint32_t agent = 0, ceControl = 0;
  std::array<uint32_t, 32> mulEnable{};  // [engine * 4 + og]
  uint32_t ifmRowStride = 0, ifmConfig1 = 0;
  std::array<uint32_t, 16> ifmPad{};  // [subfilter * 4 + ig]
  uint32_t wideKernelOffset = 0, ifmTopSlots = 0, ifmMidSlots = 0, ifmBottomSlots = 0, ifmSlotPadConfig = 0,
           ofmStripeSize = 0, ofmConfig = 0;
  std::array<uint32_t, 4> weightBaseAddress{};  // [og]
  std::array<uint32_t, 32> ifmConfig2{};        // [engine * 4 + ig]
  uint32_t blocks = 0;                          // blocks passed to the PLE; informational
  friend bool operator==(const ProgramMceStripe&, const ProgramMceStripe&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("agent", std::span(&self.agent, 1), Fields());
    visit("ce_control", std::span(&self.ceControl, 1), Fields(ce_control::kAll));
    visit("mul_enable", std::span(self.mulEnable), Fields());
    visit("ifm_row_stride", std::span(&self.ifmRowStride, 1), Fields(ifm_row_stride::kAll));
    visit("ifm_config1", std::span(&self.ifmConfig1, 1), Fields(ifm_config1::kAll));
    visit("ifm_pad", std::span(self.ifmPad), Fields(ifm_pad::kAll));
    visit("wide_kernel_offset", std::span(&self.wideKernelOffset, 1), Fields(wide_kernel_offset::kAll));
    visit("ifm_top_slots", std::span(&self.ifmTopSlots, 1), Fields(ifm_slots::kAll));
    visit("ifm_mid_slots", std::span(&self.ifmMidSlots, 1), Fields(ifm_slots::kAll));
    visit("ifm_bottom_slots", std::span(&self.ifmBottomSlots, 1), Fields(ifm_slots::kAll));
    visit("ifm_slot_pad_config", std::span(&self.ifmSlotPadConfig, 1), Fields(ifm_slot_pad_config::kAll));
    visit("ofm_stripe_size", std::span(&self.ofmStripeSize, 1), Fields(ofm_stripe_size::kAll));
    visit("ofm_config", std::span(&self.ofmConfig, 1), Fields(ofm_config::kAll));
    visit("weight_base_addr", std::span(self.weightBaseAddress), Fields(sram_address::kAll));
    visit("ifm_config2", std::span(self.ifmConfig2), Fields(ifm_config2::kAll));
    visit("blocks", std::span(&self.blocks, 1), Fields());
  }
};

struct ConfigMceif {
  uint32_t agent = 0;
  friend bool operator==(const ConfigMceif&, const ConfigMceif&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("agent", std::span(&self.agent, 1), Fields());
  }
};

struct StartMceStripe {
  uint32_t agent = 0;
  uint32_t engines = 0;  // CE_ENABLES: a count of engines, not a mask; 0 for fully connected
  friend bool operator==(const StartMceStripe&, const StartMceStripe&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("agent", std::span(&self.agent, 1), Fields());
    visit("ce_enables", std::span(&self.engines, 1), Fields());
  }
};

struct LoadPleCodeIntoPleSram {
  uint32_t agent = 0;
  friend bool operator==(const LoadPleCodeIntoPleSram&, const LoadPleCodeIntoPleSram&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("agent", std::span(&self.agent, 1), Fields());
  }
};

struct StartPleStripe {
  uint32_t agent = 0;
  std::array<uint32_t, 8> scratch{};  // parameters of the kernel
  friend bool operator==(const StartPleStripe&, const StartPleStripe&) = default;
  template <typename Self, typename Visit>
  static void words(Self& self, Visit&& visit) {
    visit("agent", std::span(&self.agent, 1), Fields());
    visit("scratch", std::span(self.scratch), Fields());
  }
};

using Command = std::variant<WaitForCounter, DmaCommand, ProgramMceStripe, ConfigMceif, StartMceStripe,
                             LoadPleCodeIntoPleSram, StartPleStripe>;

/// With all fields 0.
Agent makeAgent(AgentType type);
Command makeCommand(CommandType type);

CommandType commandType(const Command& command);
/// Size of the command in a stream, including its type word.
size_t commandBytes(CommandType type);

/// The four lists, in the order of the stream.
enum class Queue : uint8_t { DmaRead, DmaWrite, Mce, Ple };
inline constexpr size_t kQueues = 4;
std::string_view queueName(Queue queue);  // "dma_rd"
/// Whether a list may contain a command: waits belong to all lists, other commands to one.
bool belongsTo(CommandType type, Queue queue);

struct CommandStream {
  std::vector<Agent> agents;
  std::array<std::vector<Command>, kQueues> queues;

  std::vector<Command>& queue(Queue which) { return queues[static_cast<size_t>(which)]; }
  const std::vector<Command>& queue(Queue which) const { return queues[static_cast<size_t>(which)]; }
  friend bool operator==(const CommandStream&, const CommandStream&) = default;
};

/// Includes the 16-byte header. Fails beyond 4 GiB, and if a command is in the list of another unit.
Result<std::vector<uint8_t>> writeCommandStream(const CommandStream& stream);

/// Reads untrusted bytes; what follows the stream is left to the caller. Checks form only: types, counts,
/// offsets, that every command is in a list that may contain it, and that it references an agent of the right
/// type. Errors name the byte offset.
Result<CommandStream> readCommandStream(ByteSpan bytes);

/// Byte offset of each command of a queue in the written stream, for messages.
std::vector<size_t> commandOffsets(const CommandStream& stream, Queue queue);

/// The type of the agents that commands of a type reference; not meaningful for waits.
AgentType agentOf(CommandType type);

}  // namespace carina::ethosn
