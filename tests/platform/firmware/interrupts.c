// SPDX-License-Identifier: Apache-2.0
// SysTick, priorities, masks, tail chaining, WFI, WFE and SEV, SVC and PendSV.
#include "board.h"

static char log_text[64];
static volatile uint32_t logged;
static volatile uint32_t ticks, thread_steps, seen_steps;

static void note(char c) {
  log_text[logged++] = c;
}
static void check_log(const char* wanted, const char* what) {
  uint32_t i = 0;
  while (wanted[i] != '\0' && i < logged && log_text[i] == wanted[i]) ++i;
  if (wanted[i] != '\0' || i != logged) {
    log_text[logged] = '\0';
    print(log_text);
    put('\n');
    expect(0, what);
  }
  logged = 0;
}

void SysTick_Handler(void) {
  ++ticks;
}

// Handlers log a capital letter when they begin and a small one when they end.
void irq0(void) {
  note('A');
  NVIC_PEND(1) = 1u << 1;  // more urgent: at once
  NVIC_PEND(2) = 1u << 2;  // less urgent: after this one
  __asm volatile("dsb\n isb");
  note('a');
}
void irq1(void) {
  note('B');
  note('b');
}
void irq2(void) {
  note('C');
  seen_steps = thread_steps;
  note('c');
}
void SVC_Handler(void) {
  note('S');
  ICSR = 1u << 28;  // PendSV
  __asm volatile("dsb\n isb");
  note('s');
}
void PendSV_Handler(void) {
  note('P');
  expect((ICSR & 0x1ff) == 14, "VECTACTIVE in PendSV");
  note('p');
}
void NMI_Handler(void) {
  note('N');
}

static void systick(void) {
  DEMCR |= 1u << 24;
  DWT_CTRL |= 1;
  SYSTICK_LOAD = 999;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 7;
  const uint32_t start = DWT_CYCCNT;
  while (ticks < 10) wfi();
  const uint32_t cycles = DWT_CYCCNT - start;
  SYSTICK_CTRL = 0;
  expect(cycles > 9900 && cycles < 10200, "ten ticks of 1000 cycles");

  // Without its interrupt the counter still counts, and reading COUNTFLAG clears it.
  ticks = 0;
  SYSTICK_LOAD = 50;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 5;
  expect((SYSTICK_CTRL & 1u << 16) == 0, "COUNTFLAG before");
  for (volatile int i = 0; i < 100; ++i) {
  }
  expect(SYSTICK_VALUE <= 50, "the value stays below the reload");
  expect((SYSTICK_CTRL & 1u << 16) != 0, "COUNTFLAG after");
  SYSTICK_CTRL = 0;
  expect((SYSTICK_CTRL & 1u << 16) == 0, "COUNTFLAG was cleared");
  expect(ticks == 0, "no interrupt without TICKINT");
  print("systick\n");
}

static void priorities(void) {
  NVIC_PRIORITY(0) = 0x80;
  NVIC_PRIORITY(1) = 0x40;
  NVIC_PRIORITY(2) = 0xc0;
  expect(NVIC_PRIORITY(1) == 0x40 && NVIC_PRIORITY(2) == 0xc0, "priorities are bytes");
  NVIC_PRIORITY(3) = 0xff;
  expect(NVIC_PRIORITY(3) == 0xe0, "three bits of priority");
  NVIC_ENABLE(0) = 7;
  thread_steps = 1;
  NVIC_PEND(0) = 1;
  __asm volatile("dsb\n isb");
  thread_steps = 2;
  check_log("ABbaCc", "preemption, then tail chaining");
  expect(seen_steps == 1, "the thread ran between two handlers");

  // Equal priorities do not preempt; the lower number goes first.
  NVIC_PRIORITY(1) = 0x80;
  NVIC_PEND(0) = 1;
  __asm volatile("dsb\n isb");
  check_log("AaBbCc", "equal priorities");

  // Priority grouping: with PRIGROUP 6 only the top bit decides about preemption.
  REG(0xe000ed0c) = 0x05fa0600;
  NVIC_PRIORITY(0) = 0x60;
  NVIC_PRIORITY(1) = 0x40;
  NVIC_PEND(0) = 1;
  __asm volatile("dsb\n isb");
  check_log("AaBbCc", "subpriorities do not preempt");
  REG(0xe000ed0c) = 0x05fa0000;
  print("priorities\n");
}

static void masks(void) {
  cpsid();
  NVIC_PEND(0) = 2;
  check_log("", "PRIMASK holds interrupts");
  wfi();  // a masked interrupt ends it
  check_log("", "WFI takes nothing");
  expect((ICSR >> 12 & 0x1ff) == 17, "VECTPENDING");
  ICSR = 1u << 31;
  __asm volatile("dsb\n isb");
  check_log("N", "NMI cannot be masked");
  cpsie();
  check_log("Bb", "taken when PRIMASK goes");

  __asm volatile("msr basepri, %0" ::"r"(0xc0));
  NVIC_PEND(0) = 4;
  NVIC_PEND(0) = 2;
  __asm volatile("dsb\n isb");
  check_log("Bb", "BASEPRI holds what is not more urgent");
  __asm volatile("msr basepri, %0" ::"r"(0));
  __asm volatile("isb");
  check_log("Cc", "taken when BASEPRI goes");
  print("masks\n");
}

static void calls(void) {
  SHPR(14) = 0xe0;
  __asm volatile("svc 1");
  check_log("SsPp", "PendSV follows SVC");
  // How kernels leave a thread: no instruction may execute between unmasking and PendSV.
  __asm volatile("msr basepri, %0" ::"r"(0x20));
  ICSR = 1u << 28;
  __asm volatile("msr basepri, %0\n isb" ::"r"(0));
  check_log("Pp", "PendSV is taken when BASEPRI goes");
  print("calls\n");
}

static void events(void) {
  sev();
  wfe();
  sev();
  sev();
  wfe();  // one event, however often it was sent
  // SEVONPEND: a masked interrupt that becomes pending ends WFE.
  REG(0xe000ed10) = 1u << 4;
  cpsid();
  SYSTICK_LOAD = 100;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 7;
  ticks = 0;
  wfe();
  while ((ICSR & 1u << 26) == 0) wfe();
  SYSTICK_CTRL = 0;
  expect(ticks == 0, "the tick was masked");
  cpsie();
  expect(ticks == 1, "the tick came");
  print("events\n");
}

/// Fills the registers, triggers an interrupt, and compares: r4-r11 and the flags.
static uint32_t disturbed(void) {
  register uint32_t changed __asm("r3");
  __asm volatile(
      "movs r4, #4\n movs r5, #5\n movs r6, #6\n mov r8, #8\n"
      "mov r9, #9\n mov r10, #10\n mov r11, #11\n mov r12, #12\n"
      "ldr r0, =0xe000e200\n movs r1, #2\n movs r2, #2\n movs r3, #3\n"
      "cmp r3, r2\n"  // higher
      "str r1, [r0]\n dsb\n isb\n nop\n"
      "ite hi\n movhi r3, #0\n movls r3, #1\n"
      "cmp r4, #4\n it ne\n orrne r3, #2\n"
      "cmp r11, #11\n it ne\n orrne r3, #4\n"
      "cmp r12, #12\n it ne\n orrne r3, #8\n"
      "cmp r1, #2\n it ne\n orrne r3, #16\n"
      : "=r"(changed)::"r0", "r1", "r2", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
  return changed;
}

int main(void) {
  systick();
  priorities();
  masks();
  calls();
  events();
  expect(disturbed() == 0, "an interrupt changes registers");
  check_log("Bb", "the disturbing interrupt");
  return 0;
}
