// SPDX-License-Identifier: Apache-2.0
// Memory at its two addresses, unaligned accesses, code that is written and replaced.
#include "board.h"

static __attribute__((section(".npu_ram"), aligned(32))) volatile uint16_t code[16];
static volatile uint32_t word;

int main(void) {
  volatile uint32_t* other = (volatile uint32_t*)((uint32_t)&word & ~0x10000000u);
  word = 0x12345678;
  expect(*other == 0x12345678, "the non-secure alias");
  *other = 42;
  expect(word == 42, "and back");
  volatile uint8_t* bytes = (volatile uint8_t*)code;
  *(volatile uint32_t*)(bytes + 1) = 0xaabbccdd;
  expect(bytes[1] == 0xdd && bytes[4] == 0xaa, "unaligned store");

  code[0] = 0x2001;  // movs r0, #1
  code[1] = 0x4770;  // bx lr
  __asm volatile("dsb\n isb");
  uint32_t (*function)(void) = (uint32_t(*)(void))((uint32_t)code | 1);
  expect(function() == 1, "code in RAM");
  code[0] = 0x2002;
  __asm volatile("dsb\n isb");
  expect(function() == 2, "code written at the address it runs at");
  *(volatile uint16_t*)((uint32_t)code & ~0x10000000u) = 0x2003;
  REG(0xe000ef50) = 0;  // ICIALLU
  __asm volatile("dsb\n isb");
  expect(function() == 3, "code written through the other address");
  print("aliases\n");
  return 0;
}
