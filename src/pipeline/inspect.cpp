// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inspect.hpp"

#include "base/damaged.hpp"
#include "ir/printer.hpp"
#include "pipeline/port_codes.hpp"

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

std::string blobText(const pte::DelegateBlob& blob) {
  std::string text = fmt::format("delegate blob: payload {} bytes, constants {} bytes, scratch {} bytes\n",
                                 blob.payload.size(), blob.constants.size(), blob.scratchBytes);
  if (!blob.payloadKey.empty()) text += fmt::format("  payload is named data {}\n", blob.payloadKey);
  if (!blob.constantsKey.empty()) text += fmt::format("  constants are named data {}\n", blob.constantsKey);
  return text + ioText("input", blob.inputs) + ioText("output", blob.outputs);
}

/// What the program records about the codes of its inputs and outputs.
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

std::string programText(const ProgramContents& contents) {
  return pte::printProgram(contents.program, &contents.layout) + codesLines(contents.program);
}

std::string exportedText(const pt2::ExportedProgram& program) {
  std::string text = fmt::format("// {}; model '{}'", pt2::containerText(program.container), program.model);
  if (!program.torchVersion.empty()) text += ", torch " + program.torchVersion;
  text += fmt::format(", schema {}.{}\n", program.schemaMajor, program.schemaMinor);
  for (const Diagnostic& warning : program.warnings) text += "// " + warning.str() + "\n";
  return text + ir::print(program.graph, {.locations = true});
}

std::string archiveText(const std::vector<pt2::ExportedProgram>& programs) {
  std::string text;
  for (const pt2::ExportedProgram& program : programs)
    text += (text.empty() ? "" : "\n") + exportedText(program);
  return text;
}

/// What a firmware image was built for, and what it loads where.
std::string imageText(const ImageContents& contents) {
  const platform::ElfImage& image = contents.image;
  std::string text = fmt::format("firmware image (ELF for 32-bit Arm): entry {:#010x}\n", image.entry);
  if (const auto& note = contents.note) {
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

std::string arraysText(const NamedTensors& arrays) {
  std::string text;
  for (const auto& [name, tensor] : arrays) {
    text += fmt::format("{}: {}\n", name.empty() ? "array" : name,
                        ir::typeText({tensor.dtype(), tensor.shape()}));
  }
  return text;
}

/// What a file holds, without its commands.
Result<std::string> contentText(const FileContents& contents) {
  struct Visitor {
    ByteSpan bytes;
    Result<std::string> operator()(const Commands&) const { return std::string(); }
    Result<std::string> operator()(const std::vector<pt2::ExportedProgram>& programs) const {
      return archiveText(programs);
    }
    Result<std::string> operator()(const ir::Graph& graph) const { return ir::print(graph); }
    Result<std::string> operator()(const NamedTensors& arrays) const { return arraysText(arrays); }
    Result<std::string> operator()(const ProgramContents& program) const { return programText(program); }
    Result<std::string> operator()(const BundleContents& bundle) const {
      return pte::printBundle(bundle.bundle) + programText(bundle.inside);
    }
    Result<std::string> operator()(const pte::TensorData& data) const { return pte::printTensorData(data); }
    Result<std::string> operator()(const tflite::Model& model) const { return tflite::printModel(model); }
    Result<std::string> operator()(const pte::DelegateBlob& blob) const { return blobText(blob); }
    Result<std::string> operator()(const EthosNProgram&) const { return ethosNSummary(bytes); }
    Result<std::string> operator()(const ImageContents& image) const { return imageText(image); }
  };
  return std::visit(Visitor{contents.file->bytes()}, contents.value);
}

/// The command streams of a file, below `text`.
Result<std::string> withCommands(std::string text, const FileContents& contents, bool constants) {
  const auto add = [&](const std::string& commands) { text += (text.empty() ? "" : "\n") + commands; };
  if (contents.kind == FileKind::EthosNNetwork) {
    CARINA_TRY(const std::string commands, ethosNCommands(contents.file->bytes(), constants));
    add(commands);
  }
  for (const CommandStream& stream : contents.streams) {
    CARINA_TRY(const std::string commands, streamText(stream));
    add(commands);
  }
  return text;
}

}  // namespace

Result<std::string> inspectFile(const std::filesystem::path& file, const InspectOptions& options) {
  CARINA_TRY(const FileContents contents,
             options.commandsOnly ? readStreams(file, options) : readContents(file, options));
  Result<std::string> text = options.commandsOnly ? std::string() : contentText(contents);
  if (text) text = withCommands(std::move(*text), contents, options.commandsOnly);
  if (!text) return std::move(text).error().inFile(file.string()).withRemedy(kDamagedRemedy);
  return text;
}

Result<CheckedFile> checkFile(const std::filesystem::path& file, const InspectOptions& options) {
  CARINA_TRY(const FileContents contents, readStreams(file, options));
  if (contents.kind == FileKind::EthosNNetwork) {
    WorkBudget budget = WorkBudget::ofFiles({file}, false);
    auto checked = checkEthosN(contents.file->bytes(), budget);
    if (!checked) return std::move(checked).error().inFile(file.string()).withRemedy(kDamagedRemedy);
    return CheckedFile{1, checked->words, std::move(checked->findings)};
  }
  CheckedFile checked;
  for (const CommandStream& stream : contents.streams) {
    ++checked.streams;
    checked.words += stream.words.size();
    for (std::string& line : checkText(stream)) checked.findings.push_back(std::move(line));
  }
  return checked;
}

}  // namespace carina::pipeline
