// SPDX-License-Identifier: Apache-2.0
// The audio interface of the boards (I2S): two queues of four frames, each with 16 bits left and right.
#pragma once

#include <array>
#include <deque>

#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"
#include "platform/wave.hpp"

namespace carina::platform {

class Sound final : public Peripheral, public Timed {
 public:
  Sound(const Clock& clock, Interrupts& interrupts, uint32_t interrupt)
      : clock_(clock), interrupts_(interrupts), interrupt_(interrupt) {}
  /// Sets what is received: one frame of it for each frame of the interface, then silence.
  void setInput(Wave input) { input_ = std::move(input); }
  /// Records what is sent, at most kMostRecorded frames.
  void record() { recording_ = true; }

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override;
  void advance(uint64_t now) override;

  /// What was sent from the first frame on; its rate is that of the interface at that time.
  const Wave& recorded() const { return recorded_; }
  /// The rate at which input was received, if it is not that of the file; 0: it is.
  uint32_t otherRate() const { return otherRate_; }

 private:
  static constexpr size_t kDepth = 4;
  static constexpr size_t kMostRecorded = size_t{48'000} * 600;

  uint32_t rate() const;
  /// When frame `frame` of the clock's current setting ends.
  uint64_t timeOf(uint64_t frame) const;
  bool runs() const { return (control_ & (kTransmit | kReceive)) != 0; }
  bool wantsData(size_t queued) const;
  bool hasData(size_t queued) const;
  uint32_t status() const;
  void send();
  void receive();
  void update();
  void restart();

  static constexpr uint32_t kTransmit = 1, kTransmitInterrupt = 2, kReceive = 4, kReceiveInterrupt = 8;

  const Clock& clock_;
  Interrupts& interrupts_;
  uint32_t interrupt_;
  uint32_t control_ = 0, error_ = 0, divide_ = 0x80;
  std::deque<uint32_t> outgoing_, incoming_;
  uint64_t start_ = 0, frame_ = 0;  // when the clock was set, frames since then
  Wave input_;
  uint64_t taken_ = 0;  // frames consumed of the input
  Wave recorded_{2, 48'000, 16, {}};
  bool recording_ = false;
  uint32_t otherRate_ = 0;
};

}  // namespace carina::platform
