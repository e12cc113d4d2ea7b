// SPDX-License-Identifier: Apache-2.0
#include "pipeline/inspect.hpp"

#include "base/file.hpp"
#include "base/npy.hpp"
#include "ir/printer.hpp"
#include "npu/disassembler.hpp"
#include "pt2/exported_program.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

constexpr std::string_view kEthosU = "EthosUBackend";

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
  std::string text = fmt::format("  payload {} bytes, constants {} bytes, scratch {} bytes\n",
                                 blob.payload.size(), blob.constants.size(), blob.scratchBytes);
  text += ioText("input", blob.inputs) + ioText("output", blob.outputs);
  if (blob.payload.empty()) return text;
  CARINA_TRY(const std::string commands, npu::disassemblePayload(ByteSpan(blob.payload)));
  return text + commands;
}

Result<std::string> programText(ByteSpan bytes) {
  pte::FileLayout layout;
  CARINA_TRY(const pte::Program program, pte::readProgram(bytes, &layout));
  std::string text = pte::printProgram(program, &layout);
  for (const pte::Method& method : program.methods) {
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      if (method.delegates[i].id != kEthosU) continue;
      CARINA_TRY(const std::string blob, blobText(ByteSpan(method.delegates[i].blob)));
      text += fmt::format("\ndelegate {} of {}:\n{}", i, method.name, blob);
    }
  }
  return text;
}

Result<std::string> exportedText(const std::filesystem::path& file, const std::string& model) {
  CARINA_TRY(const pt2::ExportedProgram program, pt2::readExportedProgram(file, {.model = model}));
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

Result<std::string> arraysText(const std::filesystem::path& file) {
  CARINA_TRY(const NamedTensors arrays, readArrays(file));
  std::string text;
  for (const auto& [name, tensor] : arrays) {
    text += fmt::format("{}: {}\n", name.empty() ? "array" : name,
                        ir::typeText({tensor.dtype(), tensor.shape()}));
  }
  return text;
}

}  // namespace

Result<std::string> inspectFile(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension == ".pt2") return archiveText(file);
  if (extension == ".npz" || extension == ".npy") return arraysText(file);
  if (extension == ".tosa") {
    CARINA_TRY(const ir::Graph graph, tosa_io::readTosa(file));
    return ir::print(graph);
  }
  CARINA_TRY(auto mapped, MappedFile::open(file));
  auto text = extension == ".pte" ? programText(mapped->bytes())
              : extension == ".bin"
                  ? blobText(mapped->bytes())
                  : Result<std::string>(fail("cannot tell what kind of file this is")
                                            .withRemedy("files are .pt2, .tosa, .pte, .bin, .npz, .npy"));
  if (!text) return std::move(text).error().inFile(file.string());
  return text;
}

}  // namespace carina::pipeline
