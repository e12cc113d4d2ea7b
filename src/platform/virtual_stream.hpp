// SPDX-License-Identifier: Apache-2.0
// The virtual streaming interface of Arm's models (VSI): an interrupt, a timer, a DMA controller and
// driver-specific registers; and their virtual input and output (VIO).
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "platform/bus.hpp"
#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"
#include "platform/stream_files.hpp"

namespace carina::platform {

class VirtualStream final : public Peripheral, public Timed {
 public:
  VirtualStream(const Clock& clock, Interrupts& interrupts, uint32_t interrupt, const Bus& bus,
                const StreamChoice& choice)
      : clock_(clock),
        interrupts_(interrupts),
        interrupt_(interrupt),
        bus_(bus),
        peer_(makeStreamPeer(choice)) {}

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override { return expires_; }
  void advance(uint64_t now) override;

  const StreamPeer& peer() const { return *peer_; }
  /// The address of a block that was to be transferred where there is no memory; 0: none.
  uint32_t strayAddress() const { return stray_; }

 private:
  void setTimer(uint32_t control);
  void expire();
  void transfer();
  void update() { interrupts_.setLine(interrupt_, (status_ & enabled_) != 0); }
  uint64_t interval() const;

  const Clock& clock_;
  Interrupts& interrupts_;
  uint32_t interrupt_;
  const Bus& bus_;
  std::unique_ptr<StreamPeer> peer_;
  uint32_t enabled_ = 0, status_ = 0;
  uint32_t timer_ = 0, interval_ = 0, count_ = 0;
  uint64_t expires_ = kNever;
  uint32_t dma_ = 0, address_ = 0, blockSize_ = 0, blocks_ = 0, block_ = 0;
  uint32_t stray_ = 0;
};

/// Output and input signals, and 64 values.
class VirtualSignals final : public Peripheral {
 public:
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  void drive(uint32_t signal, bool high) { in_ = (in_ & ~(1u << signal)) | (high ? 1u << signal : 0); }

 private:
  uint32_t outMask_ = 0, inMask_ = 0, in_ = 0;
  std::array<uint32_t, 64> values_{};
};

}  // namespace carina::platform
