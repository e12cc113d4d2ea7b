// SPDX-License-Identifier: Apache-2.0
// Command streams to bytes and back. Layout: a header of 16 bytes ("ENCS" and the version); then, with
// offsets relative to the end of the header, a table of 11 words, the agents of 48 bytes each and the four
// lists, packed in the order of Queue.
#include <cstring>
#include <limits>

#include "ethosn/stream/command_stream.hpp"

namespace carina::ethosn {
namespace {

constexpr uint32_t kStreamMagic = 0x53434E45;  // "ENCS"
constexpr size_t kHeaderBytes = 16;
constexpr size_t kTableWords = 11, kTableBytes = 4 * kTableWords;
constexpr size_t kAgentBytes = 4 + kAgentDataBytes;

void put(std::vector<uint8_t>& out, uint32_t word) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(word >> shift));
}

uint32_t wordAt(ByteSpan bytes, size_t offset) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word |= static_cast<uint32_t>(bytes[offset + i]) << (8 * i);
  return word;
}

template <typename Visit>
void visitWords(Command& command, Visit&& visit) {
  std::visit([&](auto& body) { std::decay_t<decltype(body)>::words(body, visit); }, command);
}

template <typename T>
uint32_t rawValue(const T& member) {
  return static_cast<uint32_t>(member);
}

Error unknownEnum(std::string_view what, uint32_t value, size_t agent) {
  return fail(Code::InvalidStream, "agent {} has the unknown {} {}", agent, what, value);
}

/// Fields are little-endian and as wide as their members.
Result<Agent> readAgent(ByteSpan bytes, size_t index) {
  const uint32_t type = wordAt(bytes, 0);
  if (type >= kAgentTypes) return fail(Code::InvalidStream, "agent {} has the unknown type {}", index, type);
  Agent agent = makeAgent(static_cast<AgentType>(type));
  for (size_t i = 0; i < kAgentDataBytes; ++i) agent.unused[i] = static_cast<uint8_t>(bytes[4 + i]);
  std::visit(
      [&](auto& data) {
        std::decay_t<decltype(data)>::fields(data,
                                             [&](std::string_view, size_t offset, auto& member, Fields) {
                                               uint32_t value = 0;
                                               for (size_t i = 0; i < sizeof(member); ++i) {
                                                 value |= uint32_t{agent.unused[offset + i]} << (8 * i);
                                                 agent.unused[offset + i] = 0;
                                               }
                                               member = static_cast<std::decay_t<decltype(member)>>(value);
                                             });
      },
      agent.data);
  if (const auto* mce = std::get_if<MceScheduler>(&agent.data)) {
    if (mce->operation > MceOperation::FullyConnected)
      return unknownEnum("operation", rawValue(mce->operation), index);
  }
  if (const auto* ple = std::get_if<PleScheduler>(&agent.data)) {
    if (ple->input > PleInput::SramTwo) return unknownEnum("input mode", rawValue(ple->input), index);
  }
  return agent;
}

void writeAgent(const Agent& agent, std::vector<uint8_t>& out) {
  put(out, static_cast<uint32_t>(agent.type()));
  std::array<uint8_t, kAgentDataBytes> data = agent.unused;
  std::visit(
      [&](const auto& fields) {
        std::decay_t<decltype(fields)>::fields(
            fields, [&](std::string_view, size_t offset, const auto& member, Fields) {
              const uint32_t value = rawValue(member);
              for (size_t i = 0; i < sizeof(member); ++i)
                data[offset + i] = static_cast<uint8_t>(value >> (8 * i));
            });
      },
      agent.data);
  out.insert(out.end(), data.begin(), data.end());
}

/// The agent that a command references; 0 for waits.
uint32_t agentIndex(const Command& command) {
  return std::visit(
      [](const auto& body) -> uint32_t {
        if constexpr (std::is_same_v<std::decay_t<decltype(body)>, WaitForCounter>) {
          return 0;
        } else {
          return body.agent;
        }
      },
      command);
}

Status checkAgent(const Command& command, std::span<const Agent> agents) {
  const CommandType type = commandType(command);
  if (type == CommandType::WaitForCounter) {
    const uint32_t counter = std::get<WaitForCounter>(command).counter;
    if (counter >= kCounters)
      return fail(Code::InvalidStream, "a wait names the unknown counter {}", counter);
    return {};
  }
  const uint32_t index = agentIndex(command);
  if (index >= agents.size()) {
    return fail(Code::InvalidStream, "{} names agent {} of {}", commandTypeName(type), index, agents.size());
  }
  if (agents[index].type() != agentOf(type)) {
    return fail(Code::InvalidStream, "{} names agent {}, which is a {}, not a {}", commandTypeName(type),
                index, agentTypeName(agents[index].type()), agentTypeName(agentOf(type)));
  }
  return {};
}

std::string offsetPlace(size_t offset) {
  return fmt::format("offset {:#x}", offset);
}

/// Reads `count` commands from `offset`, which is advanced past them.
Result<std::vector<Command>> readQueue(ByteSpan bytes, size_t& offset, uint32_t count, Queue queue,
                                       std::span<const Agent> agents) {
  constexpr size_t kSmallest = 8;
  if (count > (bytes.size() - offset) / kSmallest) {
    return fail(Code::Damaged, "{} commands in list {} do not fit the {} bytes left", count, queueName(queue),
                bytes.size() - offset)
        .at(offsetPlace(offset));
  }
  std::vector<Command> commands;
  for (uint32_t i = 0; i < count; ++i) {
    if (bytes.size() - offset < 4)
      return fail(Code::Damaged, "list {} ends within command {}", queueName(queue), i)
          .at(offsetPlace(offset));
    const uint32_t rawType = wordAt(bytes, offset);
    if (rawType >= kCommandTypes) {
      return fail(Code::InvalidStream, "command {} of list {} has the unknown type {}", i, queueName(queue),
                  rawType)
          .at(offsetPlace(offset));
    }
    const auto type = static_cast<CommandType>(rawType);
    if (!belongsTo(type, queue)) {
      return fail(Code::InvalidStream, "{} does not belong in list {}", commandTypeName(type),
                  queueName(queue))
          .at(offsetPlace(offset));
    }
    if (bytes.size() - offset < commandBytes(type)) {
      return fail(Code::Damaged, "list {} ends within command {}", queueName(queue), i)
          .at(offsetPlace(offset));
    }
    Command command = makeCommand(type);
    size_t at = offset + 4;
    visitWords(command, [&](std::string_view, std::span<uint32_t> words, Fields) {
      for (uint32_t& word : words) {
        word = wordAt(bytes, at);
        at += 4;
      }
    });
    if (Status known = checkAgent(command, agents); !known)
      return std::move(known).error().at(offsetPlace(offset));
    commands.push_back(command);
    offset = at;
  }
  return commands;
}

}  // namespace

Agent makeAgent(AgentType type) {
  Agent agent;
  switch (type) {
    case AgentType::IfmStreamer:
      agent.data = Agent::Ifm{};
      break;
    case AgentType::WeightStreamer:
      agent.data = WeightStreamer{};
      break;
    case AgentType::MceScheduler:
      agent.data = MceScheduler{};
      break;
    case AgentType::PleLoader:
      agent.data = PleLoader{};
      break;
    case AgentType::PleScheduler:
      agent.data = PleScheduler{};
      break;
    case AgentType::OfmStreamer:
      agent.data = Agent::Ofm{};
      break;
  }
  return agent;
}

Command makeCommand(CommandType type) {
  switch (type) {
    case CommandType::WaitForCounter:
      return WaitForCounter{};
    case CommandType::ProgramMceStripe:
      return ProgramMceStripe{};
    case CommandType::ConfigMceif:
      return ConfigMceif{};
    case CommandType::StartMceStripe:
      return StartMceStripe{};
    case CommandType::LoadPleCodeIntoPleSram:
      return LoadPleCodeIntoPleSram{};
    case CommandType::StartPleStripe:
      return StartPleStripe{};
    case CommandType::LoadIfmStripe:
    case CommandType::LoadWeightStripe:
    case CommandType::LoadPleCodeIntoSram:
    case CommandType::StoreOfmStripe:
      break;
  }
  return DmaCommand{.type = type};
}

std::string_view agentTypeName(AgentType type) {
  constexpr std::string_view kNames[] = {"ifm_streamer", "weight_streamer", "mce_scheduler",
                                         "ple_loader",   "ple_scheduler",   "ofm_streamer"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view commandTypeName(CommandType type) {
  constexpr std::string_view kNames[] = {"wait",         "load_ifm",  "load_weights",     "program_mce",
                                         "config_mceif", "start_mce", "load_ple_to_sram", "load_ple_code",
                                         "start_ple",    "store_ofm"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view counterName(Counter counter) {
  constexpr std::string_view kNames[] = {"dma_rd", "dma_wr", "mceif", "mce_stripe", "ple_code", "ple_stripe"};
  return kNames[static_cast<size_t>(counter)];
}

std::string_view queueName(Queue queue) {
  constexpr std::string_view kNames[] = {"dma_rd", "dma_wr", "mce", "ple"};
  return kNames[static_cast<size_t>(queue)];
}

CommandType commandType(const Command& command) {
  struct Visitor {
    CommandType operator()(const WaitForCounter&) const { return CommandType::WaitForCounter; }
    CommandType operator()(const DmaCommand& dma) const { return dma.type; }
    CommandType operator()(const ProgramMceStripe&) const { return CommandType::ProgramMceStripe; }
    CommandType operator()(const ConfigMceif&) const { return CommandType::ConfigMceif; }
    CommandType operator()(const StartMceStripe&) const { return CommandType::StartMceStripe; }
    CommandType operator()(const LoadPleCodeIntoPleSram&) const {
      return CommandType::LoadPleCodeIntoPleSram;
    }
    CommandType operator()(const StartPleStripe&) const { return CommandType::StartPleStripe; }
  };
  return std::visit(Visitor{}, command);
}

size_t commandBytes(CommandType type) {
  Command command = makeCommand(type);
  size_t bytes = 4;
  visitWords(command,
             [&](std::string_view, std::span<uint32_t> words, Fields) { bytes += words.size_bytes(); });
  return bytes;
}

bool belongsTo(CommandType type, Queue queue) {
  switch (type) {
    case CommandType::WaitForCounter:
      return true;
    case CommandType::LoadIfmStripe:
    case CommandType::LoadWeightStripe:
    case CommandType::LoadPleCodeIntoSram:
      return queue == Queue::DmaRead;
    case CommandType::StoreOfmStripe:
      return queue == Queue::DmaWrite;
    case CommandType::ProgramMceStripe:
    case CommandType::ConfigMceif:
    case CommandType::StartMceStripe:
      return queue == Queue::Mce;
    case CommandType::LoadPleCodeIntoPleSram:
    case CommandType::StartPleStripe:
      return queue == Queue::Ple;
  }
  return false;
}

AgentType agentOf(CommandType type) {
  switch (type) {
    case CommandType::LoadWeightStripe:
      return AgentType::WeightStreamer;
    case CommandType::ProgramMceStripe:
    case CommandType::ConfigMceif:
    case CommandType::StartMceStripe:
      return AgentType::MceScheduler;
    case CommandType::LoadPleCodeIntoSram:
      return AgentType::PleLoader;
    case CommandType::LoadPleCodeIntoPleSram:
    case CommandType::StartPleStripe:
      return AgentType::PleScheduler;
    case CommandType::StoreOfmStripe:
      return AgentType::OfmStreamer;
    case CommandType::WaitForCounter:
    case CommandType::LoadIfmStripe:
      break;
  }
  return AgentType::IfmStreamer;
}

Result<std::vector<uint8_t>> writeCommandStream(const CommandStream& stream) {
  std::array<std::vector<uint8_t>, kQueues> lists;
  for (size_t q = 0; q < kQueues; ++q) {
    for (const Command& command : stream.queues[q]) {
      const CommandType type = commandType(command);
      if (!belongsTo(type, static_cast<Queue>(q))) {
        return fail(Code::InvalidStream, "{} does not belong in list {}", commandTypeName(type),
                    queueName(static_cast<Queue>(q)));
      }
      CARINA_RETURN_IF_ERROR(checkAgent(command, stream.agents));
      put(lists[q], static_cast<uint32_t>(type));
      Command copy = command;
      visitWords(copy, [&](std::string_view, std::span<uint32_t> words, Fields) {
        for (const uint32_t word : words) put(lists[q], word);
      });
    }
  }
  uint64_t total = kTableBytes + uint64_t{kAgentBytes} * stream.agents.size();
  std::array<uint64_t, kQueues> offsets{};
  for (size_t q = 0; q < kQueues; ++q) {
    offsets[q] = total;
    total += lists[q].size();
  }
  if (total > std::numeric_limits<uint32_t>::max() - kHeaderBytes) {
    return fail(Code::InvalidStream, "the command stream takes {} bytes, more than 4 GiB", total);
  }
  std::vector<uint8_t> out;
  out.reserve(kHeaderBytes + total);
  for (const uint32_t word :
       {kStreamMagic, kStreamMajor, kStreamMinor, kStreamPatch, static_cast<uint32_t>(total),
        static_cast<uint32_t>(kTableBytes), static_cast<uint32_t>(stream.agents.size())}) {
    put(out, word);
  }
  for (size_t q = 0; q < kQueues; ++q) {
    put(out, static_cast<uint32_t>(offsets[q]));
    put(out, static_cast<uint32_t>(stream.queues[q].size()));
  }
  for (const Agent& agent : stream.agents) writeAgent(agent, out);
  for (const auto& list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

Result<CommandStream> readCommandStream(ByteSpan bytes) {
  if (bytes.size() < kHeaderBytes + kTableBytes) {
    return fail(Code::InvalidStream, "{} bytes are too few for a command stream, whose header takes {}",
                bytes.size(), kHeaderBytes + kTableBytes);
  }
  if (wordAt(bytes, 0) != kStreamMagic)
    return fail(Code::WrongKind, "not a command stream: it does not begin with \"ENCS\"").at(offsetPlace(0));
  if (wordAt(bytes, 4) != kStreamMajor || wordAt(bytes, 8) != kStreamMinor ||
      wordAt(bytes, 12) != kStreamPatch) {
    return fail(Code::UnknownVersion, "unknown command stream version {}.{}.{}, expected {}.{}.{}",
                wordAt(bytes, 4), wordAt(bytes, 8), wordAt(bytes, 12), kStreamMajor, kStreamMinor,
                kStreamPatch)
        .at(offsetPlace(4))
        .withRemedy("compile the network with release 25.03 of Arm's driver stack, or with Carina");
  }
  std::array<uint32_t, kTableWords> table{};
  for (size_t i = 0; i < kTableWords; ++i) table[i] = wordAt(bytes, kHeaderBytes + 4 * i);
  const uint32_t total = table[0], agents = table[2];
  if (total < kTableBytes || total > bytes.size() - kHeaderBytes) {
    return fail(Code::InvalidStream, "the stream says that it has {} bytes, but there are {}", total,
                bytes.size() - kHeaderBytes)
        .at(offsetPlace(kHeaderBytes));
  }
  const ByteSpan body = bytes.first(kHeaderBytes + total);
  if (table[1] != kTableBytes) {
    return fail(Code::InvalidStream, "the agents are at {} instead of {}", table[1], kTableBytes)
        .at(offsetPlace(kHeaderBytes + 4));
  }
  if (agents > (total - kTableBytes) / kAgentBytes) {
    return fail(Code::Damaged, "{} agents do not fit the {} bytes of the stream", agents, total)
        .at(offsetPlace(kHeaderBytes + 8));
  }
  CommandStream stream;
  size_t offset = kHeaderBytes + kTableBytes;
  for (uint32_t i = 0; i < agents; ++i, offset += kAgentBytes) {
    auto agent = readAgent(body.subspan(offset, kAgentBytes), i);
    if (!agent) return std::move(agent).error().at(offsetPlace(offset));
    stream.agents.push_back(*agent);
  }
  for (size_t q = 0; q < kQueues; ++q) {
    const size_t entry = kHeaderBytes + 4 * (3 + 2 * q);
    if (table[3 + 2 * q] != offset - kHeaderBytes) {
      return fail(Code::InvalidStream, "list {} is at {} instead of {}, where the preceding part ends",
                  queueName(static_cast<Queue>(q)), table[3 + 2 * q], offset - kHeaderBytes)
          .at(offsetPlace(entry));
    }
    CARINA_TRY(stream.queues[q],
               readQueue(body, offset, table[4 + 2 * q], static_cast<Queue>(q), stream.agents));
  }
  if (offset != body.size()) {
    return fail(Code::InvalidStream, "{} bytes follow the last command", body.size() - offset)
        .at(offsetPlace(offset));
  }
  return stream;
}

std::vector<size_t> commandOffsets(const CommandStream& stream, Queue queue) {
  size_t offset = kHeaderBytes + kTableBytes + kAgentBytes * stream.agents.size();
  std::vector<size_t> offsets;
  for (size_t q = 0; q <= static_cast<size_t>(queue); ++q) {
    offsets.clear();
    for (const Command& command : stream.queues[q]) {
      offsets.push_back(offset);
      offset += commandBytes(commandType(command));
    }
  }
  return offsets;
}

}  // namespace carina::ethosn
