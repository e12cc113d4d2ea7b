// SPDX-License-Identifier: Apache-2.0
// The command line of Arm's Fixed Virtual Platforms, as far as it applies here, so that scripts written for
// them run unchanged.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/media_files.hpp"
#include "platform/platform.hpp"

namespace carina::platform {

struct FvpCommand {
  enum class Asks : uint8_t { Run, Help, Parameters, Version };
  Asks asks = Asks::Run;  // what is requested; only a run has an image
  std::filesystem::path image;
  Options options;
  bool statistics = false;  // --stat
  /// Where the output of each UART goes: a file, standard output ("") or nowhere (none).
  std::array<std::optional<std::string>, kUarts> uartFiles{""};
  MediaFiles media;                // options.media comes from these
  std::filesystem::path pmuTrace;  // JSON, compressed if the name ends in .gz; empty: none
  std::string uartInput;           // what UART 0 receives; empty: nothing
  // Files of Carina's own options; empty: none.
  std::filesystem::path trace, cpuTrace, coverage;
  std::optional<uint16_t> gdbPort;
  std::vector<std::string> unknown;  // unknown parameters, which were ignored
};

/// The output of --help.
std::string fvpHelp(std::string_view program);
/// The output of --list-params: one line per parameter with NAME=DEFAULT and its meaning, as accepted by
/// --config-file.
std::string fvpParameters(std::string_view program);

/// `program` is the name the FVP is called by: FVP_Corstone_SSE-300_Ethos-U55, ..._Ethos-U65,
/// FVP_Corstone_SSE-310, ...
Result<FvpCommand> parseFvpCommand(std::string_view program, std::span<const std::string> arguments);

}  // namespace carina::platform
