// SPDX-License-Identifier: Apache-2.0
// Device addresses of the platforms that the runner supports. If a device has a Secure and a Non-secure
// address, this is the one that works in the reset state of the boards, which run entirely in Secure state.
#pragma once

#include <stdint.h>

namespace carina::firmware {

struct Platform {
  const char* name;
  uintptr_t uart;  // CMSDK APB UART 0
  uintptr_t npu;
  uint32_t npuInterrupt;
  uintptr_t timingAdapters[2];  // SRAM (AXI0), external memory (AXI1)
  uint32_t coreHz;              // of SysTick and the cycle counter
  bool exitTag;                 // its simulator also stops at the text EXITTHESIM
};

/// Cortex-M55 with Ethos-U55 or U65 on MPS3.
constexpr Platform kCorstone300 = {"Corstone-300", 0x59303000u, 0x48102000u, 56, {0x48103000u, 0x48103200u},
                                   25000000,       true};
/// Cortex-M85 with Ethos-U85 on MPS4.
constexpr Platform kCorstone320 = {"Corstone-320", 0x58203000u, 0x50004000u, 16, {0x50006000u, 0x50006800u},
                                   25000000,       false};

/// Interrupt for a byte received by UART 0; the same on both.
constexpr uint32_t kUartReceiveInterrupt = 33;

/// Whether the NPU can reach memory at this address: all but the tightly coupled memories.
constexpr bool npuReaches(uintptr_t address) {
  const uintptr_t secureBit = 1u << 28;
  const uintptr_t place = address & ~secureBit;
  return place >= 0x01000000u && (place < 0x20000000u || place >= 0x21000000u);
}

}  // namespace carina::firmware
