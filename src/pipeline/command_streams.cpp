// SPDX-License-Identifier: Apache-2.0
#include "pipeline/command_streams.hpp"

#include <cstring>

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/payload.hpp"
#include "pte/bundle.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"
#include "tflite/vela.hpp"

namespace carina::pipeline {
namespace {

Result<CommandStream> fromPayload(std::string name, ByteSpan bytes) {
  CommandStream stream;
  stream.name = std::move(name);
  auto payload = npu::readPayload(bytes);
  if (!payload) return std::move(payload).error().at(stream.name);
  auto target = npu::payloadTarget(*payload);
  if (!target) return std::move(target).error().at(stream.name);
  stream.target = *target;
  stream.words = std::move(payload->words);
  stream.payload.assign(bytes.begin(), bytes.end());
  stream.memory.inputsKnown = false;
  return stream;
}

/// Bytes of `key` among a program's named data; empty if it is in another file.
ByteSpan namedBytes(const pte::Program* program, const std::string& key) {
  if (program == nullptr) return {};
  for (const pte::NamedData& named : program->namedData) {
    if (named.key == key) return named.bytes;
  }
  return {};
}

/// Adds the stream of a delegate blob; no effect if its commands are in another file.
Status addBlob(std::string name, ByteSpan bytes, const pte::Program* program,
               std::vector<CommandStream>& streams) {
  auto blob = pte::parseDelegateBlob(bytes);
  if (!blob) return std::move(blob).error().at(name);
  const ByteSpan payload =
      blob->payloadKey.empty() ? ByteSpan(blob->payload) : namedBytes(program, blob->payloadKey);
  if (payload.empty() && !blob->payloadKey.empty()) return {};
  CARINA_TRY(CommandStream stream, fromPayload(std::move(name), payload));
  const ByteSpan constants =
      blob->constantsKey.empty() ? ByteSpan(blob->constants) : namedBytes(program, blob->constantsKey);
  if (blob->constantsKey.empty() || !constants.empty())
    stream.memory.regions[0] = {{constants.size(), false}};
  stream.memory.regions[1] = {{blob->scratchBytes, true}};
  stream.memory.inputsKnown = true;
  stream.constants.assign(constants.begin(), constants.end());
  stream.constantsKey = blob->constantsKey;
  stream.inputs = blob->inputs;
  stream.outputs = blob->outputs;
  for (const pte::BlobIo& io : blob->inputs) {
    if (io.region < 0 || io.region > 7 || io.offset < 0) continue;
    stream.memory.initialized.push_back({static_cast<uint8_t>(io.region), static_cast<uint64_t>(io.offset),
                                         static_cast<uint64_t>(io.bytes())});
  }
  streams.push_back(std::move(stream));
  return {};
}

Result<std::vector<CommandStream>> ofProgram(ByteSpan bytes) {
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes));
  std::vector<CommandStream> streams;
  for (const pte::Method& method : program.methods) {
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      if (method.delegates[i].id != pte::kEthosUBackend) continue;
      const size_t before = streams.size();
      CARINA_RETURN_IF_ERROR(addBlob(fmt::format("delegate {} of {}", i, method.name),
                                     method.delegates[i].blob, &program, streams));
      if (streams.size() == before) continue;
      const pte::EthosUSettings settings = pte::ethosUSettings(method.delegates[i].specs);
      streams.back().method = method.name;
      streams.back().systemConfig = settings.systemConfig;
      streams.back().memoryMode = settings.memoryMode;
      streams.back().memories = settings.memories;
    }
  }
  return streams;
}

Result<std::vector<CommandStream>> ofModel(ByteSpan bytes) {
  CARINA_TRY(const tflite::Model model, tflite::readModel(bytes));
  std::vector<CommandStream> streams;
  // If there is a plan, it gives the offsets of inputs; plans of files with other operators cannot be used.
  const auto program = tflite::npuProgram(model);
  const std::vector<tflite::NpuCall> calls = program ? program->calls : tflite::npuCalls(model);
  for (const tflite::NpuCall& call : calls) {
    CARINA_TRY(CommandStream stream, fromPayload(call.name, call.payload));
    stream.memory.regions[0] = {{call.constants.size(), false}};
    if (program) {
      const tflite::NpuProgram::Subgraph& graph = program->subgraphs[call.subgraph];
      const auto bytesOf = [&](int32_t tensor) {
        return static_cast<uint64_t>(*tflite::storedBytes(graph.tensors[static_cast<size_t>(tensor)]));
      };
      const auto offsetOf = [&](int32_t tensor) { return graph.offsets[static_cast<size_t>(tensor)]; };
      stream.memory.regions[1] = {{bytesOf(call.scratch), true}};
      stream.memory.regions[2] = {{bytesOf(call.fastScratch), true}};
      stream.memory.inputsKnown = true;
      uint8_t region = 3;
      for (const int32_t input : call.inputs) {
        const auto at = offsetOf(input), scratch = offsetOf(call.scratch);
        if (at && scratch && *at >= *scratch)
          stream.memory.initialized.push_back({1, *at - *scratch, bytesOf(input)});
        if (region < 8) stream.memory.initialized.push_back({region++, 0, bytesOf(input)});
      }
    }
    streams.push_back(std::move(stream));
  }
  return streams;
}

Result<std::vector<CommandStream>> ofWords(ByteSpan bytes, std::string_view targetName) {
  if (targetName.empty()) {
    return fail(Code::InvalidStream,
                "neither a delegate blob nor a driver payload; bare commands do not say which NPU they are "
                "for")
        .withRemedy("name it with --target, for example --target ethos-u55-128");
  }
  if (bytes.size() % 4 != 0 || bytes.empty())
    return fail(Code::InvalidStream, "{} bytes are not a multiple of a command's 4 bytes", bytes.size());
  CommandStream stream;
  CARINA_TRY(stream.target, npu::findTarget(targetName));
  stream.words.resize(bytes.size() / 4);
  std::memcpy(stream.words.data(), bytes.data(), bytes.size());
  stream.memory.inputsKnown = false;
  std::vector<CommandStream> streams;
  streams.push_back(std::move(stream));
  return streams;
}

Result<std::vector<CommandStream>> ofBlob(ByteSpan bytes) {
  std::vector<CommandStream> streams;
  CARINA_RETURN_IF_ERROR(addBlob("", bytes, nullptr, streams));
  return streams;
}

Result<std::vector<CommandStream>> ofPayload(ByteSpan bytes) {
  std::vector<CommandStream> streams;
  CARINA_TRY(CommandStream stream, fromPayload("", bytes));
  streams.push_back(std::move(stream));
  return streams;
}

}  // namespace

Result<std::vector<CommandStream>> commandStreams(ByteSpan bytes, std::string_view target, FileKind kind) {
  if (kind == FileKind::Unknown) kind = fileKind(bytes);
  switch (kind) {
    case FileKind::Program:
      return ofProgram(bytes);
    case FileKind::Bundle: {
      CARINA_TRY(const pte::Bundle bundle, pte::readBundle(bytes));
      return ofProgram(bundle.program);
    }
    case FileKind::Tflite:
      return ofModel(bytes);
    case FileKind::DelegateBlob:
      return ofBlob(bytes);
    case FileKind::Payload:
      return ofPayload(bytes);
    case FileKind::TensorData:
    case FileKind::Archive:
    case FileKind::Tosa:
    case FileKind::Arrays:
    case FileKind::Array:
    case FileKind::Firmware:
    case FileKind::EtDump:
    case FileKind::EthosNNetwork:
    case FileKind::Json:
      return fail(Code::WrongKind, "a {} holds no command stream of an Ethos-U", fileKindName(kind))
          .withRemedy("give a program or model that was compiled for an Ethos-U");
    case FileKind::Unknown:
      break;
  }
  return ofWords(bytes, target);
}

Result<std::vector<CommandStream>> commandStreams(const std::filesystem::path& file,
                                                  std::string_view target) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  auto streams = commandStreams(mapped->bytes(), target, fileKind(mapped->bytes(), file));
  if (!streams) return std::move(streams).error().inFile(file.string()).withRemedy(kDamagedRemedy);
  return streams;
}

Result<std::string> streamText(const CommandStream& stream) {
  std::string text = stream.name.empty() ? "" : fmt::format("; {}\n", stream.name);
  if (stream.payload.empty()) return text + npu::disassembleStream(stream.words, stream.target->family);
  CARINA_TRY(const std::string commands, npu::disassemblePayload(stream.payload));
  return text + commands;
}

std::vector<std::string> checkText(const CommandStream& stream) {
  std::vector<std::string> lines;
  for (const npu::Finding& finding : npu::checkStream(stream.words, *stream.target, stream.memory)) {
    lines.push_back(findingText(stream.name, finding));
  }
  return lines;
}

std::string findingText(std::string_view name, const npu::Finding& finding) {
  return fmt::format("{}{}offset {:#x}: {}: {}", name, name.empty() ? "" : ", ", finding.offset,
                     npu::findingKindName(finding.kind), finding.message);
}

}  // namespace carina::pipeline
