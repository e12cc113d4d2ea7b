// SPDX-License-Identifier: Apache-2.0
// Two threads on the process stack with floating-point state of their own, switched by PendSV from SysTick,
// as an operating system does.
#include "board.h"

struct task {
  uint32_t* stack;
};
static struct task tasks[2];
static uint32_t stacks[2][256] __attribute__((aligned(8)));
static volatile uint32_t current, switches, rounds[2];
static volatile int broken;

void SysTick_Handler(void) {
  ICSR = 1u << 28;
}

// Returns the stack to continue with.
__attribute__((used)) uint32_t* next_task(uint32_t* stack) {
  tasks[current].stack = stack;
  current ^= 1;
  ++switches;
  return tasks[current].stack;
}

__attribute__((naked)) void PendSV_Handler(void) {
  __asm volatile(
      "mrs r0, psp\n"
      "tst lr, #0x10\n it eq\n vstmdbeq r0!, {s16-s31}\n"
      "stmdb r0!, {r4-r11, lr}\n"
      "bl next_task\n"
      "ldmia r0!, {r4-r11, lr}\n"
      "tst lr, #0x10\n it eq\n vldmiaeq r0!, {s16-s31}\n"
      "msr psp, r0\n"
      "bx lr\n");
}

// Starts the first task: its registers r4-r11 are not on its stack yet.
__attribute__((naked)) void SVC_Handler(void) {
  __asm volatile("ldr r0, [sp]\n msr psp, r0\n mov lr, #0xfffffffd\n bx lr\n");
}

static void work(uint32_t me) {
  const float step = me == 0 ? 0.5f : 0.25f;
  for (;;) {
    float sum = 0, other = (float)me;
    for (int i = 0; i < 200; ++i) {
      sum += step;
      other = other * 0.5f + step;
    }
    if (sum != 200 * step || other < step || other > 2 * step + 1) broken = 1;
    ++rounds[me];
    if (switches >= 200) {
      cpsid();
      report("switches", switches);
      expect(!broken, "floating-point registers of the threads");
      expect(rounds[0] > 20 && rounds[1] > 20, "both threads ran");
      finish(0);
    }
  }
}
static void task0(void) {
  work(0);
}
static void task1(void) {
  work(1);
}

static uint32_t* frame(uint32_t* top, void (*entry)(void)) {
  top -= 8;
  for (int i = 0; i < 8; ++i) top[i] = 0;
  top[6] = (uint32_t)entry & ~1u;
  top[7] = 1u << 24;
  return top;
}

int main(void) {
  uint32_t* first = frame(stacks[0] + 256, task0);
  uint32_t* second = frame(stacks[1] + 256, task1) - 9;
  for (int i = 0; i < 8; ++i) second[i] = 0;
  second[8] = 0xfffffffd;
  tasks[1].stack = second;
  SHPR(14) = 0xe0;
  SHPR(15) = 0xc0;
  SYSTICK_LOAD = 499;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 7;
  register uint32_t* r0 __asm("r0") = first;
  __asm volatile("svc 0" ::"r"(r0) : "memory");
  return 1;
}
