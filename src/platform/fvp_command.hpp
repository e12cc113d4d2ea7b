// SPDX-License-Identifier: Apache-2.0
// The command line of Arm's Fixed Virtual Platforms, as far as it means something here, so that scripts
// written for them run unchanged.
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
  Asks asks = Asks::Run;  // what for; only a run has an image
  std::filesystem::path image;
  Options options;
  bool statistics = false;  // --stat
  /// What each UART sends goes to a file, to standard output ("") or nowhere (none).
  std::array<std::optional<std::string>, kUarts> uartFiles{""};
  MediaFiles media;                // options.media comes from these
  std::filesystem::path pmuTrace;  // JSON, compressed where the name ends in .gz; empty: none
  std::string uartInput;           // what UART 0 receives; empty: nothing
  // Files of our own options; empty: none.
  std::filesystem::path trace, cpuTrace, coverage;
  std::optional<uint16_t> gdbPort;
  std::vector<std::string> unknown;  // parameters that are not known, and were left out
};

/// What --help says.
std::string fvpHelp(std::string_view program);
/// What --list-params says: NAME=VALUE, as it is when none is given, and what it means, a line each.
/// --config-file takes it.
std::string fvpParameters(std::string_view program);

/// `program` is the name the FVP is called by: FVP_Corstone_SSE-300_Ethos-U55, ..._Ethos-U65,
/// FVP_Corstone_SSE-310, ...
Result<FvpCommand> parseFvpCommand(std::string_view program, std::span<const std::string> arguments);

}  // namespace carina::platform
