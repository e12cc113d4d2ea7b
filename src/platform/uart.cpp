// SPDX-License-Identifier: Apache-2.0
#include "platform/uart.hpp"

#include <algorithm>

namespace carina::platform {
namespace {

constexpr uint32_t kUartData = 0x0, kUartState = 0x4, kUartControl = 0x8, kUartInterruptStatus = 0xc,
                   kUartDivider = 0x10, kUartPeripheralId = 0xfe0;
constexpr uint32_t kReceiveFull = 1u << 1;    // STATE
constexpr uint32_t kReceiveEnable = 1u << 1;  // CTRL
// INTSTATUS; the enable bits in CTRL are two bits higher.
constexpr uint32_t kTransmitInterrupt = 1u << 0, kReceiveInterrupt = 1u << 1;
constexpr uint32_t kEnableShift = 2;
/// Start bit, eight data bits, stop bit.
constexpr uint64_t kBitsPerByte = 10;
/// The smallest divider that the UART supports.
constexpr uint32_t kMinDivider = 16;

}  // namespace

void Uart::listen() {
  if (!input_ || full_ || (control_ & kReceiveEnable) == 0) {
    arrival_ = kNever;
  } else if (arrival_ == kNever) {
    arrival_ = clock_.now() + kBitsPerByte * std::max(divider_, kMinDivider);
  }
}

void Uart::advance(uint64_t now) {
  if (arrival_ > now) return;
  arrival_ = kNever;
  const int byte = input_();
  if (byte < 0) {
    input_ = nullptr;
    return;
  }
  received_ = static_cast<uint32_t>(byte) & 0xff;
  full_ = true;
  raise(kReceiveInterrupt);
}

void Uart::raise(uint32_t interrupt) {
  if ((control_ >> kEnableShift & interrupt) != 0) pending_ |= interrupt;
  updateLines();
}

void Uart::updateLines() {
  const auto set = [this](uint32_t line, bool high) {
    if (line != kNoLine) interrupts_.setLine(line, high);
  };
  set(lines_.receive, (pending_ & kReceiveInterrupt) != 0);
  set(lines_.transmit, (pending_ & kTransmitInterrupt) != 0);
  set(lines_.combined, pending_ != 0);
}

uint32_t Uart::read(uint32_t offset) {
  advance(clock_.now());
  switch (offset) {
    case kUartData:
      full_ = false;
      listen();
      return received_;
    case kUartState:
      return full_ ? kReceiveFull : 0;
    case kUartControl:
      return control_;
    case kUartInterruptStatus:
      return pending_;
    case kUartDivider:
      return divider_;
    case kUartPeripheralId:
      return 0x21;  // CMSDK APB UART
    case kUartPeripheralId + 4:
      return 0xb8;
    default:
      return 0;
  }
}

void Uart::write(uint32_t offset, uint32_t value) {
  advance(clock_.now());
  switch (offset) {
    case kUartData:
      // Sends even while disabled in CTRL, like the FVP, so that early messages are visible.
      send_(static_cast<char>(value & 0xff));
      raise(kTransmitInterrupt);
      break;
    case kUartControl:
      control_ = value & 0x7f;
      listen();
      break;
    case kUartInterruptStatus:
      pending_ &= ~value;
      updateLines();
      break;
    case kUartDivider:
      divider_ = value & 0xfffff;
      break;
    default:
      break;
  }
}

}  // namespace carina::platform
