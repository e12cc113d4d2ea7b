// SPDX-License-Identifier: Apache-2.0
// Images built and run on the virtual platform.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/file.hpp"
#include "images.hpp"
#include "platform/image_note.hpp"
#include "platform/platform.hpp"
#include "support/require.hpp"

namespace carina::firmware {

/// What the firmware printed, and how it ended.
struct Ran {
  platform::Outcome outcome;
  std::string text;
};

/// Builds the image as `elf` and runs it on the platform that it was built for. `npu` overrides the program's
/// NPU.
inline Ran runImage(const ImageOptions& options, const std::filesystem::path& elf, platform::Options platform,
                    const std::string& npu = "") {
  Ran ran;
  const auto image = require(buildImage(options));
  require(writeFile(elf, image.elf));
  const auto note = platform::readImageNote(asBytes(image.elf));
  EXPECT_TRUE(note.has_value());
  if (!note) return ran;
  platform.board = *platform::findBoard(note->platform);
  platform.machine = require(npu.empty() && note->target != "cpu"
                                 ? npu::makeMachine(note->target, note->systemConfig, note->memoryMode)
                                 : npu::makeMachine(npu.empty() ? "ethos-u55-128" : npu, "", ""));
  platform.secondsLimit = 300;
  platform.output = [&ran](uint32_t, char byte) {
    if (byte != '\r') ran.text += byte;
  };
  ran.outcome = require(platform::runElf(elf, platform));
  return ran;
}

}  // namespace carina::firmware
