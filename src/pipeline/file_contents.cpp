// SPDX-License-Identifier: Apache-2.0
#include "pipeline/file_contents.hpp"

#include "base/damaged.hpp"
#include "tosa_io/tosa_reader.hpp"

namespace carina::pipeline {
namespace {

Result<ProgramContents> programOf(ByteSpan bytes) {
  ProgramContents contents;
  CARINA_TRY(contents.program, pte::readProgram(bytes, &contents.layout));
  return contents;
}

Result<BundleContents> bundleOf(ByteSpan bytes) {
  BundleContents contents;
  CARINA_TRY(contents.bundle, pte::readBundle(bytes));
  CARINA_TRY(contents.inside, programOf(contents.bundle.program));
  return contents;
}

/// Every program of the archive.
Result<std::vector<pt2::ExportedProgram>> archiveOf(const std::filesystem::path& file) {
  CARINA_TRY(const std::vector<std::string> models, pt2::modelNames(file));
  std::vector<pt2::ExportedProgram> programs;
  for (const std::string& model : models) {
    CARINA_TRY(pt2::ExportedProgram program,
               pt2::readExportedProgram(file, {.model = model, .state = pt2::StatePolicy::Expose}));
    programs.push_back(std::move(program));
  }
  return programs;
}

Result<ImageContents> imageOf(ByteSpan bytes) {
  ImageContents contents;
  CARINA_TRY(contents.image, platform::readElf(bytes));
  contents.note = platform::readImageNote(bytes);
  return contents;
}

template <typename T>
Result<FileValue> asValue(Result<T> result) {
  if (!result) return std::move(result).error();
  return FileValue(std::move(*result));
}

/// What a file holds, without its commands. `bytes` are those of `file`.
Result<FileValue> valueOf(const std::filesystem::path& file, FileKind kind, ByteSpan bytes) {
  switch (kind) {
    case FileKind::Archive:
      return asValue(archiveOf(file));
    case FileKind::Arrays:
    case FileKind::Array:
      return asValue(readArrays(file));
    case FileKind::Tosa:
      return asValue(tosa_io::readTosa(file));
    case FileKind::Program:
      return asValue(programOf(bytes));
    case FileKind::Bundle:
      return asValue(bundleOf(bytes));
    case FileKind::TensorData:
      return asValue(pte::readTensorData(bytes));
    case FileKind::Tflite:
      return asValue(tflite::readModel(bytes));
    case FileKind::DelegateBlob:
      return asValue(pte::parseDelegateBlob(bytes));
    case FileKind::Firmware:
      return asValue(imageOf(bytes));
    case FileKind::EtDump:
      return fail(Code::WrongKind, "is a profile for ExecuTorch's tools (ETDump)")
          .withRemedy(
              "executorch.devtools.Inspector(etdump_path=...) shows it; 'carina profile' shows a program's "
              "operations");
    case FileKind::Json:
      return fail(Code::WrongKind, "is a JSON file, which is plain text").withRemedy("read it as it is");
    case FileKind::EthosNNetwork:
      return asValue(readEthosN(bytes, ""));
    case FileKind::Payload:
    case FileKind::Unknown:
      break;
  }
  return FileValue(Commands{});
}

bool mayHoldCommands(FileKind kind) {
  return kind == FileKind::Program || kind == FileKind::Bundle || kind == FileKind::Tflite ||
         kind == FileKind::DelegateBlob || kind == FileKind::Payload || kind == FileKind::Unknown;
}

/// The streams selected by the options.
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

/// A network for Ethos-N has one command stream and records its own target.
Status checkOnlyPart(const std::filesystem::path& file, const InspectOptions& options) {
  if (options.part && *options.part != 0) {
    return fail(Code::BadOption, "there is no part {}: the file holds 1 command stream", *options.part)
        .inFile(file.string())
        .withRemedy("parts are counted from 0");
  }
  if (!options.target.empty()) {
    return fail(Code::OptionDoesNotApply, "is for bare Ethos-U commands only")
        .inFile(file.string())
        .at("--target")
        .withRemedy("leave it out");
  }
  return {};
}

Result<FileContents> opened(const std::filesystem::path& path, const InspectOptions& options) {
  FileContents contents;
  CARINA_TRY(contents.file, MappedFile::open(path));
  contents.kind = fileKind(contents.file->bytes(), path);
  if (contents.kind == FileKind::EthosNNetwork) CARINA_RETURN_IF_ERROR(checkOnlyPart(path, options));
  return contents;
}

}  // namespace

Result<FileContents> readContents(const std::filesystem::path& path, const InspectOptions& options) {
  CARINA_TRY(FileContents contents, opened(path, options));
  auto value = valueOf(path, contents.kind, contents.file->bytes());
  if (!value) return std::move(value).error().inFile(path.string()).withRemedy(kDamagedRemedy);
  contents.value = std::move(*value);
  if (mayHoldCommands(contents.kind)) {
    CARINA_TRY(contents.streams, chosenStreams(path, options));
  }
  return contents;
}

Result<FileContents> readStreams(const std::filesystem::path& path, const InspectOptions& options) {
  CARINA_TRY(FileContents contents, opened(path, options));
  if (contents.kind == FileKind::EthosNNetwork) return contents;
  CARINA_TRY(contents.streams, chosenStreams(path, options));
  if (contents.streams.empty())
    return fail(Code::WrongKind, "the file holds no command stream")
        .inFile(path.string())
        .withRemedy("give a program or model that was compiled for an Ethos-U");
  return contents;
}

}  // namespace carina::pipeline
