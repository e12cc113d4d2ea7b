// SPDX-License-Identifier: Apache-2.0
// The files that replace display, touch screen, sound and streams, as given on command lines.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "platform/media.hpp"

namespace carina::platform {

struct MediaFiles {
  std::filesystem::path frames;  // folder for the frames of the display: frame-0001.png, ...
  std::filesystem::path events;  // a text file of events
  std::filesystem::path soundIn, soundOut;
  /// `N=FILE` or `N=DRIVER:FILE`; any number of images for the same stream.
  std::vector<std::string> streams, streamOutputs;

  /// Reads the inputs. Errors name the option or the file.
  Result<MediaOptions> read() const;
  /// Adds the outputs.
  Status addTo(OutputFiles& files, const MediaOutcome& outcome) const;
};

}  // namespace carina::platform
