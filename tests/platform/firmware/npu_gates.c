// SPDX-License-Identifier: Apache-2.0
// A copy by a Secure and by a Non-secure NPU, through the protection controller of the memory.
#include "board.h"
#include "npu_stream.h"

#define STATUS REG(NPU + 0x04)
#define CMD REG(NPU + 0x08)
#define RESET REG(NPU + 0x0c)
#define PROT REG(NPU + 0x24)
#define MPC(offset) REG(0x50083000 + (offset))

static __attribute__((section(".npu_ram"), aligned(16))) uint32_t commands[64];
static __attribute__((section(".npu_ram"), aligned(16))) uint8_t source[1024], target[1024];

/// STATUS at the end of a copy.
static uint32_t copy(uint32_t levels) {
  for (uint32_t i = 0; i < sizeof target; ++i) target[i] = 0;
  RESET = levels;
  while ((STATUS & 8) != 0) {
  }
  expect(PROT == levels, "PROT");
  REG(NPU + 0x10) = (uint32_t)commands;
  REG(NPU + 0x20) = sizeof copy_stream;
  REG(NPU + 0x80) = (uint32_t)source;
  REG(NPU + 0x88) = (uint32_t)target;
  CMD = 1;
  while ((STATUS & 1) != 0) {
  }
  const uint32_t status = STATUS;
  CMD = 2;
  return status;
}

int main(void) {
  for (uint32_t i = 0; i < sizeof copy_stream / 4; ++i) commands[i] = copy_stream[i];
  for (uint32_t i = 0; i < sizeof source; ++i) source[i] = (uint8_t)(i * 7 + 1);
  expect((copy(1) & 0x3bf) == 0x22 && target[511] == source[511], "Secure");
  expect(MPC(0x20) == 0, "nothing was refused");
  MPC(0x00) |= 1u << 4;  // bus errors
  expect((copy(3) & 0x24) == 4 && target[0] == 0, "not Secure");
  expect(MPC(0x20) == 1 && MPC(0x2c) == (uint32_t)commands, "its commands were refused");
  print("refused\n");
  return 0;
}
