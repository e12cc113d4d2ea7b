// SPDX-License-Identifier: Apache-2.0
// Code for a debugger to step through: conditional instructions, a loop, calls, a counter in memory.
#include "board.h"

volatile uint32_t counter;

/// 10 a + b, where a is the smaller: IT blocks of two and of four instructions.
__attribute__((noinline)) uint32_t ordered(uint32_t a, uint32_t b) {
  uint32_t result, order;
  __asm volatile(
      "cmp %2, %3\n"
      "itt hi\n"
      "movhi %1, #1\n"
      "movhi %0, #10\n"
      "itete ls\n"
      "movls %1, #0\n"
      "mulhi %0, %0, %3\n"
      "movls %0, #10\n"
      "addhi %0, %0, %2\n"
      "itt ls\n"
      "mulls %0, %0, %2\n"
      "addls %0, %0, %3\n"
      : "=&l"(result), "=&l"(order)
      : "l"(a), "l"(b)
      : "cc");
  counter += order;
  return result;
}

/// Tells a debugger where the counter is.
__attribute__((noinline)) void mark(volatile uint32_t* at) {
  __asm volatile("" : : "r"(at));
}

int main(void) {
  mark(&counter);
  for (uint32_t i = 0; i < 4; ++i) report("ordered", ordered(i, 3 - i));
  report("counter", counter);
  return (int)counter;
}
