// SPDX-License-Identifier: Apache-2.0
// The user-facing parts of a board, with files in their place: display, touch screen, sound, pins, virtual
// streams.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/board.hpp"
#include "platform/board_events.hpp"
#include "platform/display.hpp"
#include "platform/gpio.hpp"
#include "platform/hdlcd.hpp"
#include "platform/peripherals.hpp"
#include "platform/simple_devices.hpp"
#include "platform/sound.hpp"
#include "platform/two_wire.hpp"
#include "platform/virtual_stream.hpp"

namespace carina::platform {

/// Inputs, and which outputs are kept.
struct MediaOptions {
  bool frames = false;  // of the display
  /// Total of all frames that are kept: compressing this many takes about a minute.
  uint64_t mostPixels = uint64_t{1} << 28;
  std::vector<BoardEvent> events;
  std::optional<Wave> soundIn;
  bool soundOut = false;
  std::vector<StreamChoice> streams;  // at most one choice per stream
};

struct MediaOutcome {
  std::vector<std::string> frames;  // PNG files, at most kMaxFrames, kMaxFrameBytes and mostPixels
  uint64_t framesLeftOut = 0;
  Wave sound;  // no data: nothing was sent
  std::vector<StreamOutput> streams;
  std::vector<std::string> notes;  // what the firmware requested but did not get, as sentences
};

class Media {
 public:
  static constexpr size_t kMaxFrames = 1000;
  static constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 28;

  Media(const MediaOptions& options, const Board& board, const Clock& clock, Interrupts& interrupts,
        const Bus& bus, FpgaIo& fpgaIo);
  /// Adds the devices at their addresses.
  void addTo(Peripherals& peripherals);
  /// The devices with timed events.
  std::vector<Timed*> timed();
  /// To be called after the run, at `now`.
  MediaOutcome finish(uint64_t now);

 private:
  static constexpr uint32_t kPorts = 4;
  void apply(const BoardEvent& event);

  const Board& board_;
  Interrupts& interrupts_;
  FpgaIo& fpgaIo_;
  MediaOutcome outcome_;
  uint64_t frameBytes_ = 0, framePixels_ = 0;
  Display display_;
  Hdlcd hdlcd_;
  TouchController touch_;
  TwoWireBus touchBus_;
  WireRegisters codec_;
  TwoWireBus codecBus_;
  Sound sound_;
  std::vector<std::unique_ptr<Gpio>> ports_;
  VirtualSignals signals_;
  std::vector<std::unique_ptr<VirtualStream>> streams_;
  BoardEvents events_;
};

}  // namespace carina::platform
