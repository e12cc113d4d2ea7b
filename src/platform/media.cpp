// SPDX-License-Identifier: Apache-2.0
#include "platform/media.hpp"

#include <algorithm>

namespace carina::platform {
namespace {

constexpr uint32_t kStreams = 8, kStreamBase = 0x4ff00000, kStreamSize = 0x10000, kStreamInterrupt = 224;
constexpr uint32_t kSignalsBase = 0x4fef0000;
constexpr uint32_t kSoundInterrupt = 50, kTouchInterrupt = 51, kHdlcdInterrupt = 133;
/// Interrupts of port n as a whole, and of each of its pins.
constexpr uint32_t kPortInterrupt = 69, kPinInterrupt = 73;
/// Number of pins of each port that have their own interrupt.
constexpr uint32_t kPinsWithInterrupt[] = {16, 16, 16, 4};
constexpr uint8_t kTouchAddress = 0x41, kCodecAddress = 0x4a;

}  // namespace

Media::Media(const MediaOptions& options, const Board& board, const Clock& clock, Interrupts& interrupts,
             const Bus& bus, FpgaIo& fpgaIo)
    : board_(board),
      interrupts_(interrupts),
      fpgaIo_(fpgaIo),
      display_(clock),
      hdlcd_(clock, interrupts, kHdlcdInterrupt, bus),
      touch_(interrupts, kTouchInterrupt),
      touchBus_(touch_, kTouchAddress),
      codecBus_(codec_, kCodecAddress),
      sound_(clock, interrupts, kSoundInterrupt),
      events_(options.events, [this](const BoardEvent& event) { apply(event); }) {
  if (options.frames) {
    const auto keep = [this, mostPixels = options.mostPixels](const Picture& picture) {
      framePixels_ += uint64_t{picture.width} * picture.height;
      if (outcome_.frames.size() >= kMaxFrames || frameBytes_ >= kMaxFrameBytes ||
          framePixels_ > mostPixels) {
        ++outcome_.framesLeftOut;
        return;
      }
      outcome_.frames.push_back(pngOf(picture));
      frameBytes_ += outcome_.frames.back().size();
    };
    display_.setFrame(keep);
    hdlcd_.setFrame(keep);
  }
  if (options.soundIn) sound_.setInput(*options.soundIn);
  if (options.soundOut) sound_.record();
  for (uint32_t port = 0; port < kPorts; ++port) {
    ports_.push_back(std::make_unique<Gpio>([this, port](uint32_t pins) {
      interrupts_.setLine(kPortInterrupt + port, pins != 0);
      for (uint32_t pin = 0; pin < kPinsWithInterrupt[port]; ++pin)
        interrupts_.setLine(kPinInterrupt + port * Gpio::kPins + pin, (pins >> pin & 1) != 0);
    }));
  }
  for (uint32_t i = 0; i < kStreams; ++i) {
    const auto choice = std::find_if(options.streams.begin(), options.streams.end(),
                                     [&](const StreamChoice& stream) { return stream.stream == i; });
    streams_.push_back(
        std::make_unique<VirtualStream>(clock, interrupts, kStreamInterrupt + i, bus,
                                        choice == options.streams.end() ? StreamChoice{} : *choice));
  }
}

void Media::addTo(Peripherals& peripherals) {
  const auto add = [&](uint32_t base, const char* name, Peripheral& peripheral) {
    if (base != 0) peripherals.add(base, kDeviceFrame, name, peripheral);
  };
  add(board_.display, "lcd", display_);
  add(board_.hdlcd, "hdlcd", hdlcd_);
  add(board_.touchBus, "touch", touchBus_);
  add(board_.codecBus, "codec", codecBus_);
  add(board_.sound, "i2s", sound_);
  for (uint32_t port = 0; port < kPorts; ++port)
    peripherals.add(board_.gpio + port * kDeviceFrame, kDeviceFrame, fmt::format("gpio{}", port),
                    *ports_[port]);
  add(kSignalsBase, "vio", signals_);
  for (uint32_t i = 0; i < kStreams; ++i)
    peripherals.add(kStreamBase + i * kStreamSize, kStreamSize, fmt::format("vsi{}", i), *streams_[i]);
}

std::vector<Timed*> Media::timed() {
  std::vector<Timed*> all{&events_, &display_, &hdlcd_, &sound_};
  for (const auto& stream : streams_) all.push_back(stream.get());
  return all;
}

void Media::apply(const BoardEvent& event) {
  switch (event.kind) {
    case BoardEvent::Kind::Press:
      touch_.press(event.a, event.b);
      break;
    case BoardEvent::Kind::Release:
      touch_.release();
      break;
    case BoardEvent::Kind::Pin:
      ports_[event.a / Gpio::kPins]->drive(event.a % Gpio::kPins, event.b != 0);
      break;
    case BoardEvent::Kind::Button:
      fpgaIo_.drive(FpgaIo::kButtons, event.a, event.b != 0);
      break;
    case BoardEvent::Kind::Switch:
      fpgaIo_.drive(FpgaIo::kSwitches, event.a, event.b != 0);
      break;
    case BoardEvent::Kind::Signal:
      signals_.drive(event.a, event.b != 0);
      break;
  }
}

MediaOutcome Media::finish(uint64_t now) {
  display_.finish();
  hdlcd_.finish();
  sound_.advance(now);
  outcome_.sound = sound_.recorded();
  if (const uint32_t rate = sound_.otherRate(); rate != 0)
    outcome_.notes.push_back(
        fmt::format("the audio interface runs at {} Hz, but its input file has another rate", rate));
  if (outcome_.framesLeftOut != 0)
    outcome_.notes.push_back(fmt::format("{} frames after the first {} are left out", outcome_.framesLeftOut,
                                         outcome_.frames.size()));
  for (uint32_t i = 0; i < kStreams; ++i) {
    const VirtualStream& stream = *streams_[i];
    if (auto files = stream.peer().files(); !files.empty()) outcome_.streams.push_back({i, std::move(files)});
    if (!stream.peer().trouble().empty())
      outcome_.notes.push_back(fmt::format("stream {}: {}", i, stream.peer().trouble()));
    if (stream.strayAddress() != 0)
      outcome_.notes.push_back(
          fmt::format("stream {}: there is no memory for its blocks at 0x{:08x}", i, stream.strayAddress()));
  }
  return std::move(outcome_);
}

}  // namespace carina::platform
