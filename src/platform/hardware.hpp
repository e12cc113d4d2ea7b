// SPDX-License-Identifier: Apache-2.0
// The board and NPU to run an image on: chosen by the user, else noted in the image, else the board's default
// NPU.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "npu/targets/target.hpp"
#include "platform/board.hpp"
#include "platform/image_note.hpp"

namespace carina::platform {

/// Empty or 0: not specified.
struct HardwareChoice {
  std::string platform, target, systemConfig, memoryMode;
  int macs = 0;
};

struct Hardware {
  const Board* board = nullptr;
  npu::Machine machine;
};

/// Fails if choice and image do not agree on the board, or the board does not have the NPU.
Result<Hardware> chooseHardware(const HardwareChoice& choice, const std::optional<ImageNote>& note);
/// The same for a file.
Result<Hardware> chooseHardware(const HardwareChoice& choice, const std::filesystem::path& image);

}  // namespace carina::platform
