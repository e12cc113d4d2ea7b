// SPDX-License-Identifier: Apache-2.0
// carina run APP.elf: firmware on a virtual platform.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace carina::app {

struct PlatformFlags {
  std::filesystem::path file, json, semihostingFolder, trace;
  std::string platform = "host", target, systemConfig, memoryMode, arguments, vectorTable;
  std::vector<std::string> data;  // FILE@ADDRESS
  int macs = 0;
  bool timingAdapters = false, noSemihosting = false;
  double seconds = 0;
  uint64_t instructions = 0;
};

/// Options that only mean something with firmware.
void addPlatformOptions(CLI::App& command, PlatformFlags& flags);
/// Fills in what the image itself says of platform, NPU and memory where the flags leave that open.
Status completeFromImage(PlatformFlags& flags);
/// Runs it; the firmware's exit code.
Result<int> runOnPlatform(const PlatformFlags& flags);

}  // namespace carina::app
