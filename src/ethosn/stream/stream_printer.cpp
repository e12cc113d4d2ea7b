// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ethosn/stream/ple_kernels.hpp"
#include "ethosn/stream/stream_text.hpp"
#include "ethosn/stream/text_names.hpp"

namespace carina::ethosn {
namespace {

std::string quotedName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte > 0x7e) {
      out += fmt::format("\\{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void hexLines(std::string& out, std::span<const uint8_t> bytes) {
  constexpr size_t kPerLine = 32;
  for (size_t i = 0; i < bytes.size(); i += kPerLine) {
    for (size_t k = i; k < std::min(i + kPerLine, bytes.size()); ++k) out += fmt::format("{:02x}", bytes[k]);
    out += '\n';
  }
}

void bufferLines(std::string& out, BufferKind kind, const std::vector<BufferInfo>& infos) {
  for (const BufferInfo& info : infos) {
    out += fmt::format(".{} id={} offset={} size={} name={}\n", bufferKindName(kind), info.id, info.offset,
                       info.size, quotedName(info.name));
  }
}

std::string fieldsText(std::string_view name, uint32_t word, Fields fields) {
  std::string out = fmt::format("{}:", name);
  for (const Field& field : fields) out += fmt::format(" {}={}", field.name, field.in(word));
  return out;
}

void agentLine(std::string& out, size_t index, const Agent& agent, bool comments) {
  out += fmt::format(".agent {} {}", index, agentTypeName(agent.type()));
  std::vector<std::string> notes;
  const auto note = [&](std::string text) { notes.push_back(std::move(text)); };
  std::visit(
      [&](const auto& data) {
        std::decay_t<decltype(data)>::fields(
            data, [&](std::string_view name, size_t, const auto& member, Fields fields) {
              using Member = std::decay_t<decltype(member)>;
              if constexpr (std::is_same_v<Member, MceOperation>) {
                out += fmt::format(" {}={}", name, kMceOperations[static_cast<size_t>(member)]);
              } else if constexpr (std::is_same_v<Member, PleInput>) {
                out += fmt::format(" {}={}", name, kPleInputs[static_cast<size_t>(member)]);
              } else if constexpr (std::is_same_v<Member, uint16_t>) {
                out += fmt::format(" {}={}", name, member);
                if (name == "ple_kernel") note(pleKernelName(member));
              } else if (member != 0) {
                out += fmt::format(" {}={:#x}", name, member);
                if (!fields.empty()) note(fieldsText(name, member, fields));
              }
            });
      },
      agent.data);
  if (std::any_of(agent.unused.begin(), agent.unused.end(), [](uint8_t byte) { return byte != 0; })) {
    out += " unused=";
    for (const uint8_t byte : agent.unused) out += fmt::format("{:02x}", byte);
  }
  out += '\n';
  if (!comments) return;
  for (const std::string& text : notes) out += "    ; " + text + "\n";
}

void commandLine(std::string& out, const Command& command, size_t offset, bool comments) {
  const CommandType type = commandType(command);
  out += commandTypeName(type);
  std::vector<std::string> notes;
  std::visit(
      [&](const auto& body) {
        std::decay_t<decltype(body)>::words(
            body, [&](std::string_view name, std::span<const uint32_t> words, Fields fields) {
              if (name == "counter") {
                out += fmt::format(" counter={}", counterName(static_cast<Counter>(words[0])));
                return;
              }
              const bool decimal = name == "agent" || name == "value" || name == "dram_offset" ||
                                   name == "ce_enables" || name == "blocks";
              size_t used = words.size();
              while (used > 0 && words[used - 1] == 0) --used;
              if (used == 0 && name != "agent") return;
              out += fmt::format(" {}=", name);
              for (size_t i = 0; i < std::max<size_t>(used, 1); ++i) {
                if (i != 0) out += ',';
                out += decimal ? fmt::format("{}", words[i]) : fmt::format("{:#x}", words[i]);
              }
              // Only the first word of an array is decoded, as a representative of all.
              if (!fields.empty() && words[0] != 0) notes.push_back(fieldsText(name, words[0], fields));
            });
      },
      command);
  if (comments) out += fmt::format("  ; offset {:#x}", offset);
  out += '\n';
  if (!comments) return;
  for (const std::string& note : notes) out += "    ; " + note + "\n";
}

}  // namespace

bool isNetworkText(std::string_view text) {
  return text.starts_with(kNetworkDirective);
}

Result<std::string> printNetwork(const CompiledNetwork& network, const TextOptions& options) {
  CARINA_TRY(const ByteSpan bytes, commandStreamBytes(network));
  CARINA_TRY(const CommandStream stream, readCommandStream(bytes));
  CARINA_TRY(const std::vector<uint8_t> written, writeCommandStream(stream));
  std::string out =
      fmt::format("{} {}.{}.{}\n", kNetworkDirective, kNetworkMajor, kNetworkMinor, kNetworkPatch);
  bufferLines(out, BufferKind::Input, network.inputs);
  bufferLines(out, BufferKind::Output, network.outputs);
  bufferLines(out, BufferKind::ConstantControlUnit, network.controlUnitBuffers);
  bufferLines(out, BufferKind::ConstantDma, network.dmaBuffers);
  bufferLines(out, BufferKind::Intermediate, network.intermediates);
  for (size_t i = 0; i < stream.agents.size(); ++i) agentLine(out, i, stream.agents[i], options.comments);
  for (size_t q = 0; q < kQueues; ++q) {
    const auto queue = static_cast<Queue>(q);
    out += fmt::format(".list {}\n", queueName(queue));
    const std::vector<size_t> offsets = commandOffsets(stream, queue);
    for (size_t i = 0; i < offsets.size(); ++i)
      commandLine(out, stream.queues[q][i], offsets[i], options.comments);
  }
  const size_t begin = network.controlUnitBuffers[0].offset, end = begin + written.size();
  const std::span<const uint8_t> data = network.constantControlUnit;
  if (begin != 0) {
    out += ".before\n";
    hexLines(out, data.first(begin));
  }
  if (end != data.size()) {
    out += ".behind\n";
    hexLines(out, data.subspan(end));
  }
  if (options.constants && !network.constantDma.empty()) {
    out += ".constants\n";
    hexLines(out, network.constantDma);
  }
  return out + ".end\n";
}

}  // namespace carina::ethosn
