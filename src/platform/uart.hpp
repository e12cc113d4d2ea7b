// SPDX-License-Identifier: Apache-2.0
// The CMSDK APB UART: always ready to send; receives its input at the rate of ten bits per byte, and never
// before the previous byte has been read.
#pragma once

#include <functional>

#include "platform/clock.hpp"
#include "platform/device.hpp"
#include "platform/interrupts.hpp"

namespace carina::platform {

class Uart final : public Peripheral, public Timed {
 public:
  /// Interrupt lines; kNoLine if there is none.
  struct Lines {
    uint32_t receive, transmit, combined;
  };
  static constexpr uint32_t kNoLine = kInterruptLines;

  /// `send` receives every byte.
  Uart(const Clock& clock, Interrupts& interrupts, Lines lines, std::function<void(char)> send)
      : clock_(clock), interrupts_(interrupts), lines_(lines), send_(std::move(send)) {}
  /// The source of received bytes, 0 to 255; -1 at the end. May block, which stops simulated time.
  void setInput(std::function<int()> input) { input_ = std::move(input); }

  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;
  uint64_t nextEvent() const override { return arrival_; }
  void advance(uint64_t now) override;

 private:
  /// Schedules the arrival of the next byte if it can be received.
  void listen();
  void raise(uint32_t interrupt);
  void updateLines();

  const Clock& clock_;
  Interrupts& interrupts_;
  Lines lines_;
  std::function<void(char)> send_;
  std::function<int()> input_;
  uint32_t control_ = 0, divider_ = 0;
  uint32_t pending_ = 0;  // INTSTATUS
  uint32_t received_ = 0;
  bool full_ = false;          // received_ has not been read
  uint64_t arrival_ = kNever;  // of the next byte
};

}  // namespace carina::platform
