// SPDX-License-Identifier: Apache-2.0
// carina run APP.elf: firmware on a virtual platform.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "command_line.hpp"
#include "platform/media_files.hpp"
#include "platform/pmu_trace.hpp"

namespace carina::app {

/// Not a board: the runtime in this process.
constexpr const char* kHostPlatform = "host";

struct PlatformFlags {
  std::filesystem::path file, json, semihostingFolder, trace, cpuTrace, pmuTrace, coverage, uartInput;
  std::string platform = kHostPlatform, target, systemConfig, memoryMode, arguments, vectorTable, waitStates;
  std::vector<std::string> data;  // FILE@ADDRESS
  platform::MediaFiles media;
  int macs = 0;
  std::optional<uint16_t> gdbPort;
  bool timingAdapters = false, noSemihosting = false;
  double seconds = 0;
  uint64_t instructions = 0;
  uint64_t pmuInterval = platform::PmuTrace::kUsualInterval;  // cycles
};

/// Options that only apply to firmware.
void addPlatformOptions(Command& command, PlatformFlags& flags);
/// The first of these options that was given; empty if none was.
std::string platformOptionGiven(const Command& command);
/// Whether a file is firmware, judged by its name.
bool isFirmware(const std::filesystem::path& file);
/// Runs it; returns the firmware's exit code.
Result<int> runOnPlatform(const PlatformFlags& flags);

}  // namespace carina::app
