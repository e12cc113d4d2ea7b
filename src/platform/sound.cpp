// SPDX-License-Identifier: Apache-2.0
// Source: application notes of the MPS3 FPGA images (registers; master clock 12.288 MHz). The left/right
// clock toggles every DIVIDE cycles of the master clock: 48 kHz with its reset value.
#include "platform/sound.hpp"

#include <algorithm>
#include <numeric>

namespace carina::platform {
namespace {

constexpr uint32_t kSoundControl = 0x00, kSoundStatus = 0x04, kSoundError = 0x08, kSoundDivide = 0x0c,
                   kSoundSend = 0x10, kSoundReceived = 0x14;
constexpr uint32_t kQueueReset = 1u << 16;
constexpr uint64_t kMasterClock = 12'288'000;
constexpr uint32_t kTransmitError = 1, kReceiveError = 2;

}  // namespace

uint32_t Sound::rate() const {
  return static_cast<uint32_t>(kMasterClock / (2 * uint64_t{std::max(divide_, 1u)}));
}

uint64_t Sound::timeOf(uint64_t frame) const {
  constexpr uint64_t kCommon = std::gcd(uint64_t{kCoreHz}, kMasterClock);
  const uint64_t cycles = frame * 2 * std::max(divide_, 1u);  // of the master clock
  return start_ + (cycles * (kCoreHz / kCommon) + kMasterClock / kCommon - 1) / (kMasterClock / kCommon);
}

bool Sound::wantsData(size_t queued) const {
  return (control_ & kTransmit) != 0 && kDepth - queued > (control_ >> 8 & 7);
}

bool Sound::hasData(size_t queued) const {
  return (control_ & kReceive) != 0 && kDepth - queued < (control_ >> 12 & 7);
}

uint32_t Sound::status() const {
  const auto bit = [](bool on, uint32_t n) { return on ? 1u << n : 0; };
  return bit(wantsData(outgoing_.size()), 0) | bit(hasData(incoming_.size()), 1) | bit(outgoing_.empty(), 2) |
         bit(outgoing_.size() == kDepth, 3) | bit(incoming_.empty(), 4) | bit(incoming_.size() == kDepth, 5);
}

void Sound::update() {
  const bool high = (wantsData(outgoing_.size()) && (control_ & kTransmitInterrupt) != 0) ||
                    (hasData(incoming_.size()) && (control_ & kReceiveInterrupt) != 0);
  interrupts_.setLine(interrupt_, high);
}

void Sound::restart() {
  start_ = clock_.now();
  frame_ = 0;
}

void Sound::send() {
  uint32_t frame = 0;
  if (outgoing_.empty()) {
    if (recorded_.data.empty()) return;  // nothing was sent yet
    error_ |= kTransmitError;
  } else {
    frame = outgoing_.front();
    outgoing_.pop_front();
  }
  if (!recording_ || recorded_.frames() >= kMostRecorded) return;
  if (recorded_.data.empty()) recorded_.rate = rate();
  for (const uint32_t shift : {16u, 24u, 0u, 8u}) recorded_.data.push_back(frame >> shift & 0xff);
}

void Sound::receive() {
  uint32_t frame = 0;
  if (taken_ < input_.frames()) {
    if (input_.rate != rate()) otherRate_ = rate();
    const auto side = [&](uint32_t channel) {
      return static_cast<uint16_t>(input_.sample16(taken_, channel));
    };
    frame = uint32_t{side(0)} << 16 | side(1);
    ++taken_;
  }
  if (incoming_.size() == kDepth)
    error_ |= kReceiveError;
  else
    incoming_.push_back(frame);
}

void Sound::advance(uint64_t now) {
  if (!runs()) return;
  while (timeOf(frame_ + 1) <= now) {
    ++frame_;
    if ((control_ & kTransmit) != 0) send();
    if ((control_ & kReceive) != 0) receive();
  }
  update();
}

uint64_t Sound::nextEvent() const {
  // Frames pass without events; the firmware is only notified when a queue reaches its level.
  uint64_t next = kNever;
  if ((control_ & kTransmitInterrupt) != 0 && !wantsData(outgoing_.size())) {
    for (size_t frames = 1; frames <= outgoing_.size(); ++frames) {
      if (!wantsData(outgoing_.size() - frames)) continue;
      next = timeOf(frame_ + frames);
      break;
    }
  }
  if ((control_ & kReceiveInterrupt) != 0 && !hasData(incoming_.size())) {
    for (size_t frames = 1; frames <= kDepth - incoming_.size(); ++frames) {
      if (!hasData(incoming_.size() + frames)) continue;
      next = std::min(next, timeOf(frame_ + frames));
      break;
    }
  }
  return next;
}

uint32_t Sound::read(uint32_t offset) {
  advance(clock_.now());
  switch (offset) {
    case kSoundControl:
      return control_;
    case kSoundStatus:
      return status();
    case kSoundError:
      return error_;
    case kSoundDivide:
      return divide_;
    case kSoundReceived: {
      if (incoming_.empty()) {
        error_ |= kReceiveError;
        return 0;
      }
      const uint32_t frame = incoming_.front();
      incoming_.pop_front();
      update();
      return frame;
    }
    default:
      return 0;
  }
}

void Sound::write(uint32_t offset, uint32_t value) {
  advance(clock_.now());
  switch (offset) {
    case kSoundControl:
      if (!runs()) restart();
      control_ = value & 0x3770f;
      if ((value & kQueueReset) != 0) {
        outgoing_.clear();
        incoming_.clear();
      }
      break;
    case kSoundError:
      error_ &= ~value;
      break;
    case kSoundDivide:
      divide_ = value & 0x3ff;
      restart();
      break;
    case kSoundSend:
      if (outgoing_.size() == kDepth)
        error_ |= kTransmitError;
      else
        outgoing_.push_back(value);
      break;
    default:
      break;
  }
  update();
}

}  // namespace carina::platform
