// SPDX-License-Identifier: Apache-2.0
// DebugMonitor: breakpoints, single steps, a request by software. Vectors in unmapped memory. Stack limits in
// the handler of a hard fault: `-` on the command line enforces them.
#include "board.h"

#define DFSR REG(0xe000ed30)
#define CCR REG(0xe000ed14)
#define VTOR REG(0xe000ed08)
#define STKOFHFNMIGN (1u << 10)
#define MON_EN (1u << 16)
#define MON_PEND (1u << 17)
#define MON_STEP (1u << 18)
#define MON_REQ (1u << 19)
#define SDME (1u << 20)
#define LAST_MEMORY 0x1007ff80u  // room for 32 vectors
#define FAR_INTERRUPT 56u

static uint32_t table[128] __attribute__((aligned(512)));
static volatile uint32_t events, kinds, steps, places[8], hard_faults, hard_status, far_interrupts;
static volatile uint32_t small_stack;

__attribute__((used)) void note_event(uint32_t* frame) {
  const uint32_t kind = DFSR;
  DFSR = kind;
  kinds |= kind;
  ++events;
  if ((kind & 2) != 0) frame[6] += 2;
  if (steps == 0) return;
  DEMCR |= MON_STEP;
  if ((kind & 1) != 0) {
    places[8 - steps] = frame[6];
    if (--steps == 0) DEMCR &= ~MON_STEP;
  }
}
__attribute__((naked)) static void monitor(void) {
  __asm volatile("mov r0, sp\n b note_event\n");
}

__attribute__((used)) void note_hard_fault(uint32_t* frame) {
  ++hard_faults;
  hard_status = HFSR;
  HFSR = HFSR;
  if ((hard_status & 1u << 31) != 0) frame[6] += 2;
  if ((hard_status & 2) != 0) VTOR = (uint32_t)table;
  if (small_stack == 0) return;
  __asm volatile("mov r0, sp\n msr msplim, r0\n push {r0-r7}\n pop {r0-r7}\n movs r0, #0\n msr msplim, r0" ::
                     : "r0", "cc");
}
__attribute__((naked)) void HardFault_Handler(void) {
  __asm volatile("mov r0, sp\n b note_hard_fault\n");
}
static void far_interrupt(void) {
  ++far_interrupts;
}

static void breakpoint(void) {
  __asm volatile("bkpt 1");
}

int main(void) {
  static char line[64];
  struct {
    char* text;
    uint32_t size;
  } block = {line, sizeof line};
  expect(semihost(0x15, &block) == 0, "SYS_GET_CMDLINE");
  const char* mode = line;
  while (*mode != ' ' && *mode != '\0') ++mode;
  const int limits = mode[0] == ' ' && mode[1] == '-';

  const uint32_t* vectors = (const uint32_t*)VTOR;
  for (uint32_t i = 0; i < 16; ++i) table[i] = vectors[i];
  table[12] = (uint32_t)monitor;
  table[16 + FAR_INTERRUPT] = (uint32_t)far_interrupt;
  VTOR = (uint32_t)table;

  expect((DEMCR & (SDME | MON_EN)) == SDME, "DebugMonitor is Secure");
  breakpoint();
  expect(hard_faults == 1 && hard_status == 1u << 31 && events == 0,
         "without it a breakpoint is a hard fault");
  DEMCR |= MON_EN | MON_REQ;
  expect((DEMCR & MON_REQ) != 0, "MON_REQ");
  breakpoint();
  expect(hard_faults == 1 && events == 1 && kinds == 2, "a breakpoint");
  cpsid();
  breakpoint();
  cpsie();
  expect(hard_faults == 2 && hard_status == 1u << 31 && events == 1, "a breakpoint where it is masked");
  DEMCR |= MON_PEND;
  __asm volatile("dsb\n isb");
  expect(events == 2 && kinds == 2 && (DEMCR & MON_PEND) == 0, "a request");
  kinds = 0;
  steps = 3;
  // Stepping begins at the breakpoint.
  __asm volatile(".global stepped\n bkpt 2\nstepped:\n movs r0, #1\n movs r1, #2\n movs r2, #3\n nop" ::
                     : "r0", "r1", "r2", "cc");
  extern const char stepped[];
  const uint32_t first = (uint32_t)stepped & ~1u;
  expect(steps == 0 && events == 6 && kinds == 3, "steps");
  expect(places[5] == first + 2 && places[6] == first + 4 && places[7] == first + 6, "where they end");
  print("monitored\n");

  hard_faults = 0;
  uint32_t* last = (uint32_t*)LAST_MEMORY;
  for (uint32_t i = 0; i < 32; ++i) last[i] = table[i];
  NVIC_ENABLE(FAR_INTERRUPT) = 1u << FAR_INTERRUPT % 32;
  VTOR = LAST_MEMORY;
  NVIC_PEND(FAR_INTERRUPT) = 1u << FAR_INTERRUPT % 32;
  __asm volatile("dsb\n isb");
  expect(hard_faults == 1 && hard_status == 2, "VECTTBL");
  expect(far_interrupts == 1, "the interrupt waited");
  print("vectors\n");

  small_stack = 1;
  if (!limits) CCR |= STKOFHFNMIGN;
  DEMCR &= ~MON_EN;
  breakpoint();
  expect(hard_faults == 2, "the handler went on");
  print("stack limits\n");
  return 0;
}
