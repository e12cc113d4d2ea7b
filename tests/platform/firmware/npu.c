// SPDX-License-Identifier: Apache-2.0
// Registers of the NPU, and one job: a DMA copy, an interrupt at its end.
#include "board.h"
#include "npu_stream.h"

#define STATUS REG(NPU + 0x04)
#define CMD REG(NPU + 0x08)
#define RESET REG(NPU + 0x0c)
#define QREAD REG(NPU + 0x18)

static __attribute__((section(".npu_ram"), aligned(16))) uint32_t commands[64];
static __attribute__((section(".npu_ram"), aligned(16))) uint8_t source[1024], target[1024];
static volatile uint32_t interrupts, status;

void npu_irq(void) {
  CMD = (CMD & 0xc) | 2;
  status = STATUS;
  ++interrupts;
}

static void start(const uint32_t* words, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) commands[i] = words[i];
  interrupts = 0;
  RESET = 1;
  while ((STATUS & 8) != 0) {
  }
  CMD = 0;
  REG(NPU + 0x10) = (uint32_t)commands;
  REG(NPU + 0x14) = 0;
  REG(NPU + 0x20) = 4 * count;
  REG(NPU + 0x1c) = 0;
  REG(NPU + 0x80) = (uint32_t)source;
  REG(NPU + 0x84) = 0;
  REG(NPU + 0x88) = (uint32_t)target;
  REG(NPU + 0x8c) = 0;
  REG(NPU + 0x3c) = 0;
  CMD = 1;
}

int main(void) {
  print("id ");
  print_hex(REG(NPU));
  print(" config ");
  print_hex(REG(NPU + 0x28));
  put('\n');
  NVIC_PRIORITY(NPU_IRQ) = 5 << 5;
  NVIC_ENABLE(NPU_IRQ) = 1u << NPU_IRQ % 32;

  for (uint32_t i = 0; i < sizeof source; ++i) source[i] = (uint8_t)(i * 7 + 1);
  start(copy_stream, sizeof copy_stream / 4);
  expect((STATUS & 1) != 0 && interrupts == 0, "the job is under way");
  expect(QREAD < sizeof copy_stream, "the reader is inside the stream");
  while (interrupts == 0) wfe();
  expect(interrupts == 1, "one interrupt");
  expect((status & 0x3bf) == 0x20, "the end was reached without a fault");
  expect(QREAD == sizeof copy_stream, "all commands were read");
  for (uint32_t i = 0; i < 512; ++i) expect(target[i] == source[i], "the copy");
  for (uint32_t i = 512; i < 1024; ++i) expect(target[i] == 0, "nothing behind the copy");
  print("copied\n");

  // Only a STOP, many times: each raises an interrupt.
  for (uint32_t i = 0; i < 100; ++i) {
    start(stop_stream, sizeof stop_stream / 4);
    while (interrupts == 0) wfe();
    expect(interrupts == 1 && (status & 0x3bf) == 0x20, "an empty job");
  }
  print("empty jobs done\n");

  // The NPU cannot reach the tightly coupled memory: a bus fault, not a crash.
  start(copy_stream, sizeof copy_stream / 4);
  while (interrupts == 0) wfe();
  RESET = 1;
  REG(NPU + 0x10) = (uint32_t)commands;
  REG(NPU + 0x20) = sizeof copy_stream;
  REG(NPU + 0x80) = 0x30000000;
  REG(NPU + 0x88) = (uint32_t)target;
  interrupts = 0;
  CMD = 1;
  while (interrupts == 0) wfe();
  expect((status & 4) != 0 && (status & 0x20) == 0, "a bus fault");
  print("bus fault seen\n");
  return 0;
}
