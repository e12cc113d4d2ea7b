// SPDX-License-Identifier: Apache-2.0
// The files in the place of display, touch screen, sound and streams, as command lines name them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "platform/media.hpp"

namespace carina::platform {

struct MediaFiles {
  std::filesystem::path frames;  // a folder for what the display shows: frame-0001.png, ...
  std::filesystem::path events;  // a text of events
  std::filesystem::path soundIn, soundOut;
  /// `N=FILE` or `N=DRIVER:FILE`; of pictures any number for the same stream.
  std::vector<std::string> streams, streamOutputs;

  /// Reads what goes in. Errors name the option or the file.
  Result<MediaOptions> read() const;
  /// Adds what came out.
  Status addTo(OutputFiles& files, const MediaOutcome& outcome) const;
};

}  // namespace carina::platform
