// SPDX-License-Identifier: Apache-2.0
// SCR.SLEEPONEXIT: the thread does not resume between interrupts until a handler allows it.
#include "board.h"

#define SCR REG(0xe000ed10)

static volatile uint32_t ticks, turns, turns_seen;

void SysTick_Handler(void) {
  ++ticks;
  turns_seen += turns;
  if (ticks == 3) SCR &= ~2u;
}

int main(void) {
  SYSTICK_LOAD = 4999;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 7;
  SCR |= 2;
  wfi();
  while (ticks < 3) ++turns;
  expect(ticks == 3 && turns == 0 && turns_seen == 0, "the thread slept");
  const uint32_t before = ticks;
  wfi();
  expect(ticks == before + 1, "WFI as ever");
  return 0;
}
