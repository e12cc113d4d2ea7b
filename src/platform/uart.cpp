// SPDX-License-Identifier: Apache-2.0
#include "platform/uart.hpp"

namespace carina::platform {
namespace {
constexpr uint32_t kData = 0x0, kControl = 0x8, kDivider = 0x10, kPeripheralId = 0xfe0;
}  // namespace

uint32_t Uart::read(uint32_t offset) {
  switch (offset) {
    case kControl:
      return control_;
    case kDivider:
      return divider_;
    case kPeripheralId:
      return 0x21;  // CMSDK APB UART
    case kPeripheralId + 4:
      return 0xb8;
    default:
      return 0;  // STATE: neither buffer full
  }
}

void Uart::write(uint32_t offset, uint32_t value) {
  // Sends even while CTRL says off: so does the FVP, and early messages are worth seeing.
  if (offset == kData) send_(static_cast<char>(value & 0xff));
  if (offset == kControl) control_ = value & 0x7f;
  if (offset == kDivider) divider_ = value & 0xfffff;
}

}  // namespace carina::platform
