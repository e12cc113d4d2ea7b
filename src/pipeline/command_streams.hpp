// SPDX-License-Identifier: Apache-2.0
// The command streams in a file, whatever its kind: delegates of a program, `ethos-u` operators of a TFLite
// model, a delegate blob, a driver payload, bare commands. Includes what the checker needs to know about the
// memory that they run on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "npu/model/check_stream.hpp"
#include "npu/targets/target.hpp"
#include "pipeline/file_kind.hpp"
#include "pte/delegate_blob.hpp"

namespace carina::pipeline {

struct CommandStream {
  std::string name;    // "delegate 0 of forward", "operator 0"; empty if the file is only a stream
  std::string method;  // of a program: the method that calls it
  std::vector<std::byte> payload;  // the driver payload; empty for bare commands
  std::vector<uint32_t> words;     // the commands
  const npu::Target* target = nullptr;
  npu::StreamMemory memory;
  std::vector<std::byte> constants;          // region 0, if the file holds it
  std::string constantsKey;                  // their key in the named data of a program; else empty
  std::vector<pte::BlobIo> inputs, outputs;  // of a delegate blob; empty: unknown
  std::string systemConfig, memoryMode;      // as named by the container; else empty
  std::string memories;                      // as described by it (npu::describeMemories)
};

/// All streams of a file in file order; having none is not an error. `target` names the NPU of bare commands,
/// which do not record it (others ignore it). Errors: a file of a kind that cannot hold commands, a payload
/// that cannot be read.
Result<std::vector<CommandStream>> commandStreams(const std::filesystem::path& file,
                                                  std::string_view target = {});
/// The same for the bytes of a file; if `kind` is Unknown, it is determined from the content alone.
Result<std::vector<CommandStream>> commandStreams(ByteSpan bytes, std::string_view target = {},
                                                  FileKind kind = FileKind::Unknown);

/// Assembler text of a stream, with a comment naming it.
Result<std::string> streamText(const CommandStream& stream);

/// "delegate 0 of forward, offset 0x148: hazard: ..."
std::string findingText(std::string_view stream, const npu::Finding& finding);
/// What the checker finds in a stream, one text per finding. Empty when nothing is wrong.
std::vector<std::string> checkText(const CommandStream& stream);

}  // namespace carina::pipeline
