// SPDX-License-Identifier: Apache-2.0
// The board's clocks; the timing adapter of the NPU's first port, and a job that it slows down.
#include "board.h"
#include "npu_stream.h"

#define ADAPTER(offset) REG(TIMING_ADAPTER0 + (offset))

static __attribute__((section(".npu_ram"), aligned(16))) uint32_t commands[32];
static __attribute__((section(".npu_ram"), aligned(16))) uint8_t source[512], target[512];

void npu_irq(void) {
  REG(NPU + 0x08) = 2;
}

static void ask_for_clocks(void) {
  expect(REG(SCC + 0x14) == 25000000, "ACLK");
  REG(SCC + 0xac) = 0;
  expect((REG(SCC + 0xac) & 1) == 0, "no request is done");
  REG(SCC + 0xa8) = 1u << 31 | 1u << 20 | 2;  // read oscillator 2
  expect((REG(SCC + 0xac) & 1) == 1, "the request is done");
  expect(REG(SCC + 0xa0) == 25000000, "its rate");
  expect((REG(SCC + 0xa8) & 1u << 31) == 0, "START goes off");
  expect(REG(SCC + 0xffc) == 0x41055470, "identity");
  REG(SCC + 0x00) = 1;
  expect(REG(SCC + 0x00) == 1, "configuration words are kept");
}

int main(void) {
  ask_for_clocks();
  expect(ADAPTER(0x38) == 0x1117, "VERSION");
  expect((ADAPTER(0x28) & 1) == 1, "the dynamic clock is on");
  ADAPTER(0x00) = 0xffffffff;
  expect(ADAPTER(0x00) == 0x3f, "MAXR has six bits");
  ADAPTER(0x00) = 2;    // outstanding reads
  ADAPTER(0x04) = 2;    // and writes
  ADAPTER(0x0c) = 500;  // read latency
  ADAPTER(0x10) = 250;  // write latency
  ADAPTER(0x14) = 320;  // 50 words of 8 bytes
  ADAPTER(0x18) = 80;   // in 400 cycles
  ADAPTER(0x1c) = 50;
  expect(ADAPTER(0x0c) == 500 && ADAPTER(0x1c) == 50, "settings are kept");

  for (uint32_t i = 0; i < sizeof copy_stream / 4; ++i) commands[i] = copy_stream[i];
  NVIC_ENABLE(NPU_IRQ) = 1u << NPU_IRQ % 32;
  REG(NPU + 0x0c) = 1;
  REG(NPU + 0x10) = (uint32_t)commands;
  REG(NPU + 0x20) = sizeof copy_stream;
  REG(NPU + 0x80) = (uint32_t)source;
  REG(NPU + 0x88) = (uint32_t)target;
  REG(NPU + 0x08) = 1;
  wfi();
  expect((REG(NPU + 0x04) & 0x20) != 0, "the job is done");
  return 0;
}
