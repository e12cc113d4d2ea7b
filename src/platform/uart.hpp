// SPDX-License-Identifier: Apache-2.0
// The CMSDK APB UART. Always ready to send, never receives.
#pragma once

#include <functional>

#include "platform/device.hpp"

namespace carina::platform {

class Uart final : public Peripheral {
 public:
  /// `send` gets every byte.
  explicit Uart(std::function<void(char)> send) : send_(std::move(send)) {}
  uint32_t read(uint32_t offset) override;
  void write(uint32_t offset, uint32_t value) override;

 private:
  std::function<void(char)> send_;
  uint32_t control_ = 0, divider_ = 0;
};

}  // namespace carina::platform
