// SPDX-License-Identifier: Apache-2.0
// The other end of a virtual streaming interface: files, and the registers through which the drivers of Arm
// Virtual Hardware control reading and writing them.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "platform/picture.hpp"
#include "platform/wave.hpp"

namespace carina::platform {

/// The meaning of the 64 user registers.
enum class StreamDriver : uint8_t {
  Data,     // none: defined by the firmware
  Audio,    // audio_drv
  Video,    // video_drv
  VStream,  // vstream_audio_*, or vstream_video_* if the files are images
};
/// "video".
const char* streamDriverName(StreamDriver driver);

/// What a stream delivers: bytes, sound, or a sequence of images.
using StreamSource = std::variant<std::vector<uint8_t>, Wave, std::vector<Picture>>;

struct StreamChoice {
  uint32_t stream = 0;  // 0 to 7
  StreamDriver driver = StreamDriver::Data;
  bool output = false;  // keeps what the firmware sends
  bool pictures = false;
  StreamSource source;
};

/// The output of a stream: a file, or one for each image.
struct StreamOutput {
  uint32_t stream = 0;
  std::vector<std::string> files;
};

class StreamPeer {
 public:
  static constexpr uint32_t kRegisters = 64;

  virtual ~StreamPeer() = default;
  virtual uint32_t read(uint32_t reg) { return registers_[reg]; }
  virtual void write(uint32_t reg, uint32_t value) { registers_[reg] = value; }
  /// Fills a block from the source; the rest is 0.
  virtual void deliver(std::span<uint8_t> block) = 0;
  virtual void take(std::span<const uint8_t> block) = 0;
  /// The timer has expired; returns interrupt causes in addition to the usual one.
  virtual uint32_t tick() { return 0; }
  /// What was received, as files; empty if nothing was.
  virtual std::vector<std::string> files() const = 0;
  /// What the firmware requested but does not get; empty: nothing.
  const std::string& trouble() const { return trouble_; }

 protected:
  std::array<uint32_t, kRegisters> registers_{};
  std::string trouble_;
};

std::unique_ptr<StreamPeer> makeStreamPeer(const StreamChoice& choice);

}  // namespace carina::platform
