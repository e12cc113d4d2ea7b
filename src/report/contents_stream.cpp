// SPDX-License-Identifier: Apache-2.0
// Command streams of both families as JSON.
#include <nlohmann/json.hpp>

#include "ethosn/stream/command_stream.hpp"
#include "npu/isa/disassembler.hpp"
#include "report/contents.hpp"

namespace carina::report {
namespace {

using Json = nlohmann::ordered_json;

Json commandJson(const npu::ListedCommand& command) {
  Json json = {{"offset", command.offset}};
  if (command.name.empty()) {
    json["words"] = command.words;
    if (!command.reserved.empty()) json["reserved_bits_of"] = command.reserved;
    return json;
  }
  json["name"] = command.name;
  if (!command.fields.empty()) json["fields"] = Json::object();
  for (const npu::ListedField& field : command.fields)
    json["fields"][std::string(field.name)] =
        field.enumerator.empty() ? Json(field.value) : Json(field.enumerator);
  if (!command.operation.empty()) json["operation"] = command.operation;
  return json;
}

Json buffersJson(const std::vector<ethosn::BufferInfo>& buffers) {
  Json all = Json::array();
  for (const ethosn::BufferInfo& buffer : buffers)
    all.push_back(
        {{"id", buffer.id}, {"offset", buffer.offset}, {"bytes", buffer.size}, {"name", buffer.name}});
  return all;
}

Json agentJson(const ethosn::Agent& agent) {
  Json json = {{"type", ethosn::agentTypeName(agent.type())}, {"fields", Json::object()}};
  std::visit(
      [&](const auto& body) {
        std::decay_t<decltype(body)>::fields(
            body, [&](std::string_view name, size_t, const auto& member, ethosn::Fields) {
              json["fields"][std::string(name)] = static_cast<int64_t>(member);
            });
      },
      agent.data);
  return json;
}

/// Registers that are 0 are omitted, as in text form.
Json commandJson(const ethosn::Command& command, size_t offset) {
  Json json = {{"offset", offset},
               {"name", ethosn::commandTypeName(ethosn::commandType(command))},
               {"fields", Json::object()}};
  std::visit(
      [&](const auto& body) {
        std::decay_t<decltype(body)>::words(body, [&](std::string_view name, std::span<const uint32_t> words,
                                                      ethosn::Fields) {
          const bool zero = std::all_of(words.begin(), words.end(), [](uint32_t word) { return word == 0; });
          if (zero && name != "agent") return;
          json["fields"][std::string(name)] = words.size() == 1 ? Json(words[0]) : Json(words);
        });
      },
      command);
  return json;
}

}  // namespace

Json streamJson(const pipeline::CommandStream& stream) {
  Json json = {{"name", stream.name}, {"target", stream.target->name}};
  if (!stream.systemConfig.empty()) json["system_config"] = stream.systemConfig;
  if (!stream.memoryMode.empty()) json["memory_mode"] = stream.memoryMode;
  json["payload_bytes"] = stream.payload.size();
  json["words"] = stream.words.size();
  json["commands"] = Json::array();
  for (const npu::ListedCommand& command :
       npu::listStream(stream.words, stream.target->family, stream.target))
    json["commands"].push_back(commandJson(command));
  return json;
}

Json networkJson(const pipeline::EthosNProgram& program) {
  const ethosn::CompiledNetwork& network = program.network;
  Json json = Json::object();
  json["target"] = program.variant != nullptr ? Json(program.variant->name) : Json();
  json["constant_bytes"] = network.constantDma.size();
  json["intermediate_bytes"] = ethosn::intermediateBytes(network);
  json["inputs"] = buffersJson(network.inputs);
  json["outputs"] = buffersJson(network.outputs);
  json["constants"] = buffersJson(network.dmaBuffers);
  json["intermediates"] = buffersJson(network.intermediates);
  // readEthosN() has already read the stream.
  const auto bytes = ethosn::commandStreamBytes(network);
  CARINA_CHECK(bytes.ok(), "a network that was read has its command stream");
  const auto stream = ethosn::readCommandStream(*bytes);
  CARINA_CHECK(stream.ok(), "a network that was read has a command stream that can be read");
  json["stream_bytes"] = bytes->size();
  json["agents"] = Json::array();
  for (const ethosn::Agent& agent : stream->agents) json["agents"].push_back(agentJson(agent));
  json["queues"] = Json::array();
  for (size_t q = 0; q < ethosn::kQueues; ++q) {
    const auto queue = static_cast<ethosn::Queue>(q);
    const std::vector<size_t> offsets = ethosn::commandOffsets(*stream, queue);
    Json commands = Json::array();
    for (size_t i = 0; i < offsets.size(); ++i)
      commands.push_back(commandJson(stream->queue(queue)[i], offsets[i]));
    json["queues"].push_back({{"name", ethosn::queueName(queue)}, {"commands", std::move(commands)}});
  }
  return json;
}

}  // namespace carina::report
