// SPDX-License-Identifier: Apache-2.0
// Reads what is in a file: `carina inspect` shows it as text (inspect.hpp) or as JSON (report/contents.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/file.hpp"
#include "base/npy.hpp"
#include "pipeline/command_streams.hpp"
#include "pipeline/ethosn.hpp"
#include "pipeline/file_kind.hpp"
#include "platform/elf.hpp"
#include "platform/image_note.hpp"
#include "pt2/exported_program.hpp"
#include "pte/bundle.hpp"
#include "pte/delegate_blob.hpp"
#include "pte/program.hpp"
#include "pte/tensor_data.hpp"
#include "tflite/model.hpp"

namespace carina::pipeline {

struct InspectOptions {
  bool commandsOnly = false;   // only the command streams, as text that npu::assemble accepts
  std::optional<size_t> part;  // only this command stream of the file
  std::string target;          // NPU of bare commands, which do not record it
};

struct ProgramContents {
  pte::Program program;
  pte::FileLayout layout;
};
struct BundleContents {
  pte::Bundle bundle;
  ProgramContents inside;
};
struct ImageContents {
  platform::ElfImage image;
  std::optional<platform::ImageNote> note;  // of images that carina firmware built
};
struct Commands {};  // a payload or bare commands: only a command stream

/// By FileKind. An archive may hold several exported programs.
using FileValue = std::variant<Commands, std::vector<pt2::ExportedProgram>, ir::Graph, NamedTensors,
                               ProgramContents, BundleContents, pte::TensorData, tflite::Model,
                               pte::DelegateBlob, EthosNProgram, ImageContents>;

struct FileContents {
  std::shared_ptr<const MappedFile> file;  // parts of the value borrow its bytes
  FileKind kind = FileKind::Unknown;
  FileValue value;
  std::vector<CommandStream> streams;  // of an Ethos-U; those of an Ethos-N are in its network
};

/// Determined by content. Errors name the file; ETDump and JSON files are not supported.
Result<FileContents> readContents(const std::filesystem::path& path, const InspectOptions& options = {});
/// Only the command streams.
Result<FileContents> readStreams(const std::filesystem::path& path, const InspectOptions& options = {});

}  // namespace carina::pipeline
