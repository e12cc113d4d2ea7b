// SPDX-License-Identifier: Apache-2.0
// Cycle counters: DWT and the Armv8.1-M PMU.
#include "board.h"

#define PMU_CCNTR REG(0xe000307c)
#define PMU_EVCNTR0 REG(0xe0003000)
#define PMU_EVTYPER0 REG(0xe0003400)
#define PMU_CNTENSET REG(0xe0003c00)
#define PMU_CNTENCLR REG(0xe0003c20)
#define PMU_CTRL REG(0xe0003e04)

static void work(uint32_t rounds) {
  // Two instructions per round.
  __asm volatile("1: subs %0, #1\n bne 1b" : "+r"(rounds)::"cc");
}

int main(void) {
  expect(DWT_CYCCNT == 0, "CYCCNT stands before it is enabled");
  DEMCR |= 1u << 24;
  DWT_CTRL |= 1;
  DWT_CYCCNT = 0;
  work(1000);
  const uint32_t dwt = DWT_CYCCNT;
  expect(dwt >= 2000 && dwt < 2040, "CYCCNT");
  DWT_CYCCNT = 0xfffffff0;
  work(100);
  expect(DWT_CYCCNT < 300, "CYCCNT wraps");
  DWT_CTRL &= ~1u;
  const uint32_t stopped = DWT_CYCCNT;
  work(100);
  expect(DWT_CYCCNT == stopped, "CYCCNT stops");

  PMU_CTRL |= 1;
  PMU_CTRL |= 1u << 2;
  PMU_EVTYPER0 = 0x08;
  PMU_CNTENSET = 1u << 31 | 1;
  const uint32_t start = PMU_CCNTR, first = PMU_EVCNTR0;
  work(1000);
  const uint32_t cycles = PMU_CCNTR - start, instructions = PMU_EVCNTR0 - first;
  expect(cycles >= 2000 && cycles < 2040, "PMU cycles");
  expect(instructions >= 2000 && instructions < 2040, "PMU instructions");
  PMU_CNTENCLR = 1u << 31;
  const uint32_t held = PMU_CCNTR;
  work(10);
  expect(PMU_CCNTR == held, "PMU stops");
  print("counted\n");
  return 0;
}
