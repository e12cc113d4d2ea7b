// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inspect.hpp"

#include "base/damaged.hpp"
#include "base/file.hpp"
#include "base/npy.hpp"
#include "ir/printer.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/ethosn.hpp"
#include "pipeline/file_kind.hpp"
#include "pipeline/port_codes.hpp"
#include "platform/elf.hpp"
#include "platform/image_note.hpp"
#include "pt2/exported_program.hpp"
#include "pte/bundle.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"
#include "pte/tensor_data.hpp"
#include "tflite/model.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

std::string ioText(std::string_view what, std::span<const pte::BlobIo> all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    const Shape shape(all[i].shape.begin(), all[i].shape.end());
    text += fmt::format("  {} {}: {} of {} byte(s) at offset {} of region {}\n", what, i, shapeText(shape),
                        all[i].elementBytes, all[i].offset, all[i].region);
  }
  return text;
}

Result<std::string> blobText(ByteSpan bytes) {
  CARINA_TRY(const pte::DelegateBlob blob, pte::parseDelegateBlob(bytes));
  std::string text = fmt::format("delegate blob: payload {} bytes, constants {} bytes, scratch {} bytes\n",
                                 blob.payload.size(), blob.constants.size(), blob.scratchBytes);
  if (!blob.payloadKey.empty()) text += fmt::format("  payload is named data {}\n", blob.payloadKey);
  if (!blob.constantsKey.empty()) text += fmt::format("  constants are named data {}\n", blob.constantsKey);
  return text + ioText("input", blob.inputs) + ioText("output", blob.outputs);
}

/// What the program tells of its inputs and outputs.
std::string codesLines(const pte::Program& program) {
  std::string text;
  for (const pte::Method& method : program.methods) {
    if (isCodeMethod(method)) continue;
    const std::string of = &method == &program.methods.front() ? "" : method.name + " ";
    const auto add = [&](const char* kind, const std::vector<PortCodes>& ports) {
      for (size_t i = 0; i < ports.size(); ++i) {
        if (!ports[i].empty()) text += fmt::format("{}{} {}: {}\n", of, kind, i, codesText(ports[i]));
      }
    };
    const ProgramCodes codes = codesOf(program, method.name);
    add("input", codes.inputs);
    add("output", codes.outputs);
  }
  return text;
}

Result<std::string> programText(ByteSpan bytes) {
  pte::FileLayout layout;
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes, &layout));
  return pte::printProgram(program, &layout) + codesLines(program);
}

Result<std::string> bundleText(ByteSpan bytes) {
  CARINA_TRY(const pte::Bundle bundle, pte::readBundle(bytes));
  CARINA_TRY(const std::string program, programText(bundle.program));
  return pte::printBundle(bundle) + program;
}

Result<std::string> exportedText(const std::filesystem::path& file, const std::string& model) {
  CARINA_TRY(const pt2::ExportedProgram program,
             pt2::readExportedProgram(file, {.model = model, .state = pt2::StatePolicy::Expose}));
  std::string text = fmt::format("// {}; model '{}'", pt2::containerText(program.container), program.model);
  if (!program.torchVersion.empty()) text += ", torch " + program.torchVersion;
  text += fmt::format(", schema {}.{}\n", program.schemaMajor, program.schemaMinor);
  for (const Diagnostic& warning : program.warnings) text += "// " + warning.str() + "\n";
  return text + ir::print(program.graph, {.locations = true});
}

/// Every program of the archive.
Result<std::string> archiveText(const std::filesystem::path& file) {
  CARINA_TRY(const std::vector<std::string> models, pt2::modelNames(file));
  std::string text;
  for (const std::string& model : models) {
    CARINA_TRY(const std::string program, exportedText(file, model));
    text += (text.empty() ? "" : "\n") + program;
  }
  return text;
}

/// What a firmware image is for, and what it loads where.
Result<std::string> firmwareText(ByteSpan bytes) {
  CARINA_TRY(const platform::ElfImage image, platform::readElf(bytes));
  std::string text = fmt::format("firmware image (ELF for 32-bit Arm): entry {:#010x}\n", image.entry);
  if (const auto note = platform::readImageNote(bytes)) {
    text +=
        fmt::format("  built by carina firmware for {}, {}, {}", note->platform, note->core, note->target);
    if (!note->systemConfig.empty()) text += fmt::format(", {}, {}", note->systemConfig, note->memoryMode);
    text += "\n";
  }
  if (!image.attributes.cpuName.empty()) text += fmt::format("  core {}\n", image.attributes.cpuName);
  for (const platform::ElfSegment& segment : image.segments)
    text += fmt::format("  {:>9} bytes at {:#010x}\n", segment.bytes.size(), segment.address);
  text += fmt::format("  {} functions\n", image.functions.size());
  return text;
}

Result<std::string> arraysText(const std::filesystem::path& file) {
  CARINA_TRY(const NamedTensors arrays, readArrays(file));
  std::string text;
  for (const auto& [name, tensor] : arrays) {
    text += fmt::format("{}: {}\n", name.empty() ? "array" : name,
                        ir::typeText({tensor.dtype(), tensor.shape()}));
  }
  return text;
}

/// What a file holds, without its commands. `bytes` are those of `file`.
Result<std::string> contentText(const std::filesystem::path& file, ByteSpan bytes) {
  switch (fileKind(bytes, file)) {
    case FileKind::Archive:
      return archiveText(file);
    case FileKind::Arrays:
    case FileKind::Array:
      return arraysText(file);
    case FileKind::Tosa: {
      CARINA_TRY(const ir::Graph graph, tosa_io::readTosa(file));
      return ir::print(graph);
    }
    case FileKind::Program:
      return programText(bytes);
    case FileKind::Bundle:
      return bundleText(bytes);
    case FileKind::TensorData: {
      CARINA_TRY(const pte::TensorData data, pte::readTensorData(bytes));
      return pte::printTensorData(data);
    }
    case FileKind::Tflite: {
      CARINA_TRY(const tflite::Model model, tflite::readModel(bytes));
      return tflite::printModel(model);
    }
    case FileKind::DelegateBlob:
      return blobText(bytes);
    case FileKind::Firmware:
      return firmwareText(bytes);
    case FileKind::EtDump:
      return fail(Code::WrongKind, "is a profile for ExecuTorch's tools (ETDump)")
          .withRemedy(
              "executorch.devtools.Inspector(etdump_path=...) shows it; 'carina profile' shows a program's "
              "operations");
    case FileKind::Json:
      return fail(Code::WrongKind, "is a JSON file, which is text").withRemedy("read it as it is");
    case FileKind::EthosNNetwork:
      return ethosNSummary(bytes);
    case FileKind::Payload:
    case FileKind::Unknown:
      break;
  }
  return std::string();
}

bool mayHoldCommands(FileKind kind) {
  return kind == FileKind::Program || kind == FileKind::Bundle || kind == FileKind::Tflite ||
         kind == FileKind::DelegateBlob || kind == FileKind::Payload || kind == FileKind::EthosNNetwork ||
         kind == FileKind::Unknown;
}

/// The streams that the options ask for.
Result<std::vector<CommandStream>> chosenStreams(const std::filesystem::path& file,
                                                 const InspectOptions& options) {
  CARINA_TRY(std::vector<CommandStream> streams, commandStreams(file, options.target));
  if (!options.part) return streams;
  if (*options.part >= streams.size()) {
    return fail(Code::BadOption, "there is no part {}: the file holds {} command stream{}", *options.part,
                streams.size(), streams.size() == 1 ? "" : "s")
        .inFile(file.string())
        .withRemedy("parts are counted from 0");
  }
  std::vector<CommandStream> one;
  one.push_back(std::move(streams[*options.part]));
  return one;
}

/// A network for Ethos-N has one command stream, and says itself what it is for.
Status checkOnlyPart(const std::filesystem::path& file, const InspectOptions& options) {
  if (options.part && *options.part != 0) {
    return fail(Code::BadOption, "there is no part {}: the file holds 1 command stream", *options.part)
        .inFile(file.string())
        .withRemedy("parts are counted from 0");
  }
  if (!options.target.empty()) {
    return fail(Code::OptionDoesNotApply, "is for bare commands of an Ethos-U")
        .inFile(file.string())
        .at("--target")
        .withRemedy("leave it out");
  }
  return {};
}

}  // namespace

Result<std::string> inspectFile(const std::filesystem::path& file, const InspectOptions& options) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  std::string text;
  const bool ethosN = fileKind(mapped->bytes(), file) == FileKind::EthosNNetwork;
  if (ethosN) CARINA_RETURN_IF_ERROR(checkOnlyPart(file, options));
  if (!options.commandsOnly) {
    auto content = contentText(file, mapped->bytes());
    if (!content) return std::move(content).error().inFile(file.string()).withRemedy(kDamagedRemedy);
    text = std::move(*content);
    if (!mayHoldCommands(fileKind(mapped->bytes(), file))) return text;
  }
  if (ethosN) {
    auto commands = ethosNCommands(mapped->bytes(), options.commandsOnly);
    if (!commands) return std::move(commands).error().inFile(file.string()).withRemedy(kDamagedRemedy);
    return text.empty() ? *commands : text + "\n" + *commands;
  }
  CARINA_TRY(const std::vector<CommandStream> streams, chosenStreams(file, options));
  if (streams.empty() && options.commandsOnly)
    return fail(Code::WrongKind, "the file holds no command stream")
        .inFile(file.string())
        .withRemedy("programs and models that were compiled for an Ethos-U hold them");
  for (const CommandStream& stream : streams) {
    auto commands = streamText(stream);
    if (!commands) return std::move(commands).error().inFile(file.string()).withRemedy(kDamagedRemedy);
    if (!text.empty()) text += "\n";
    text += *commands;
  }
  return text;
}

Result<CheckedFile> checkFile(const std::filesystem::path& file, const InspectOptions& options) {
  CARINA_TRY(const auto mapped, MappedFile::open(file));
  if (fileKind(mapped->bytes(), file) == FileKind::EthosNNetwork) {
    CARINA_RETURN_IF_ERROR(checkOnlyPart(file, options));
    auto checked = checkEthosN(mapped->bytes());
    if (!checked) return std::move(checked).error().inFile(file.string()).withRemedy(kDamagedRemedy);
    return CheckedFile{1, checked->words, std::move(checked->findings)};
  }
  CARINA_TRY(const std::vector<CommandStream> streams, chosenStreams(file, options));
  if (streams.empty())
    return fail(Code::WrongKind, "the file holds no command stream")
        .inFile(file.string())
        .withRemedy("programs and models that were compiled for an Ethos-U hold them");
  CheckedFile checked;
  for (const CommandStream& stream : streams) {
    ++checked.streams;
    checked.words += stream.words.size();
    for (std::string& line : checkText(stream)) checked.findings.push_back(std::move(line));
  }
  return checked;
}

}  // namespace carina::pipeline
