// SPDX-License-Identifier: Apache-2.0
// When the floating-point state of an interrupted program is stored, and what happens when it cannot be.
// Prints what handlers see; the same image prints the same on other models of the core.
#include "board.h"

#define FPCCR REG(0xe000ef34)
#define FPCAR REG(0xe000ef38)
#define FPDSCR REG(0xe000ef3c)
#define MPU_CTRL REG(0xe000ed94)
#define MPU_RNR REG(0xe000ed98)
#define MPU_RBAR REG(0xe000ed9c)
#define MPU_RLAR REG(0xe000eda0)

#define LSPACT (1u << 0)
#define CLRONRET (1u << 28)
#define LSPEN (1u << 30)
#define ASPEN (1u << 31)

/// What PendSV_Handler saw: its EXC_RETURN, FPCCR, FPCAR and stack pointer at its start, then FPCCR and
/// CONTROL at its end.
static volatile struct { uint32_t link, control, address, stack, later, active; } seen;
static volatile uint32_t frame[64];  // what lies at FPCAR after the handler's action
static void (*volatile action)(void);
static volatile uint32_t noted[8];
static uint32_t thread_stack[128] __attribute__((aligned(32)));

__attribute__((naked)) void PendSV_Handler(void) {
  __asm volatile(
      "ldr r0, =seen\n"
      "str lr, [r0]\n"
      "ldr r1, =0xe000ef34\n"
      "ldrd r2, r3, [r1]\n strd r2, r3, [r0, #4]\n"
      "mov r2, sp\n str r2, [r0, #12]\n"
      "ldr r2, =action\n ldr r2, [r2]\n"
      "push {r0, lr}\n blx r2\n pop {r0, lr}\n"
      "ldr r1, =0xe000ef34\n ldr r2, [r1]\n str r2, [r0, #16]\n"
      "mrs r2, control\n str r2, [r0, #20]\n"
      "ldr r1, =frame\n"
      "ldr r3, [r0, #8]\n"
      "movs r2, #18\n"
      "1: ldr r0, [r3], #4\n str r0, [r1], #4\n subs r2, #1\n bne 1b\n"
      "bx lr\n");
}

__attribute__((naked)) static void nothing(void) {
  __asm volatile("bx lr\n");
}
/// Uses the floating-point unit; records its FPSCR.
__attribute__((naked)) static void compute(void) {
  __asm volatile(
      "vmov.f32 s0, #1.0\n vmrs r1, fpscr\n ldr r0, =noted\n str r1, [r0]\n"
      "movs r1, #5\n vmsr p0, r1\n bx lr\n");
}
/// Denies all access to thread_stack, then uses the unit, then records that it got there.
__attribute__((naked)) static void compute_without_stack(void) {
  __asm volatile(
      "ldr r0, =0xe000ed94\n movs r1, #5\n str r1, [r0]\n dsb\n isb\n"
      "vmov.f32 s0, #1.0\n"
      "ldr r0, =noted\n ldr r1, [r0, #8]\n adds r1, #1\n str r1, [r0, #8]\n"
      "ldr r0, =0xe000ed94\n movs r1, #0\n str r1, [r0]\n dsb\n isb\n bx lr\n");
}
/// Pends SysTick.
__attribute__((naked)) static void pend_systick(void) {
  __asm volatile("ldr r0, =0xe000ed04\n mov r1, #0x04000000\n str r1, [r0]\n dsb\n isb\n bx lr\n");
}

__attribute__((naked)) void SysTick_Handler(void) {
  __asm volatile(
      "ldr r0, =noted\n str lr, [r0, #16]\n"
      "ldr r1, =0xe000ef34\n ldrd r2, r3, [r1]\n strd r2, r3, [r0, #20]\n"
      "bx lr\n");
}

/// Records when the fault came, clears its status, makes the stack accessible again.
static void note_fault(uint32_t which) {
  noted[1] = which;
  noted[2] |= 0x100;
  noted[3] = CFSR | (HFSR & 1u << 30);
  CFSR = CFSR;
  HFSR = HFSR;
  MPU_CTRL = 0;
}
void MemManage(void) {
  note_fault(4);
}
void HardFault_Handler(void) {
  note_fault(3);
}

static void show(const char* name, uint32_t value) {
  print(name);
  put(' ');
  print_hex(value);
  put('\n');
}

/// Puts numbers into S0 to S15, triggers PendSV, and stores the registers afterwards in `result`.
__attribute__((naked, noinline)) static void interrupted(__attribute__((unused)) uint32_t* result) {
  __asm volatile(
      "push {r4, lr}\n"
      "movs r1, #15\n"
      "ldr r2, =0x40000000\n"
      "vmov s0, r2\n adds r2, #1\n vmov s1, r2\n adds r2, #1\n vmov s2, r2\n adds r2, #13\n vmov s15, r2\n"
      "movw r2, #0x1234\n vmsr p0, r2\n"
      "sub r1, sp, #0xb0\n movs r3, #44\n movw r2, #0xbeef\n movt r2, #0xdead\n"
      "1: str r2, [r1], #4\n subs r3, #1\n bne 1b\n"
      "ldr r1, =0xe000ed04\n mov r2, #0x10000000\n str r2, [r1]\n dsb\n isb\n"
      "vstr s0, [r0]\n vstr s1, [r0, #4]\n vstr s15, [r0, #8]\n vmrs r2, p0\n str r2, [r0, #12]\n"
      "pop {r4, pc}\n");
}

static void round(const char* name, void (*what)(void)) {
  uint32_t after[4];
  for (int i = 0; i < 8; ++i) noted[i] = 0;
  action = what;
  print(name);
  put('\n');
  interrupted(after);
  show("  link", seen.link);
  show("  fpccr", seen.control);
  show("  later", seen.later);
  show("  control", seen.active);
  if ((seen.link & 0x10) == 0) {
    show("  s1", frame[1]);
    show("  s15", frame[15]);
    show("  vpr", frame[17]);
  }
  show("  afterwards", FPCCR);
  show("  s0", after[0]);
  show("  s1", after[1]);
  show("  s15", after[2]);
  show("  p0", after[3]);
  expect(seen.address == 0 || (seen.control & LSPACT) == 0 || (seen.link & 4) != 0 ||
             seen.address == seen.stack + 0x20,
         "FPCAR");
}

/// The same as a thread on thread_stack.
static void on_thread_stack(const char* name, void (*what)(void)) {
  const uint32_t top = (uint32_t)(thread_stack + 128);
  action = what;
  for (int i = 0; i < 8; ++i) noted[i] = 0;
  static uint32_t after[4];
  register uint32_t* r0 __asm("r0") = after;
  register void (*function)(uint32_t*) __asm("r5") = interrupted;
  __asm volatile(
      "msr psp, %2\n mrs r1, control\n orr r1, #2\n msr control, r1\n isb\n"
      "blx %1\n"
      "mrs r1, control\n bic r1, #2\n msr control, r1\n isb\n"
      : "+r"(r0)
      : "r"(function), "r"(top)
      : "r1", "r2", "r3", "r12", "lr", "memory", "cc");
  print(name);
  put('\n');
  show("  fpccr", seen.control);
  show("  later", seen.later);
  show("  handler", noted[1]);
  show("  progress", noted[2]);
  show("  status", noted[3]);
  show("  s1", after[1]);
}

int main(void) {
  REG(UART0 + 8) = 1;
  static uint32_t vectors[64] __attribute__((aligned(256)));
  for (int i = 0; i < 64; ++i) vectors[i] = ((volatile uint32_t*)0x10000000)[i];
  vectors[4] = (uint32_t)MemManage | 1;
  REG(0xe000ed08) = (uint32_t)vectors;
  SHPR(14) = 0x40;
  SHPR(15) = 0x80;
  SHPR(4) = 0x20;
  __asm volatile("mrs r0, control\n bic r0, #12\n msr control, r0\n isb" ::: "r0");
  show("reset", FPCCR & ~0x7f8u);

  round("a handler without floats", nothing);
  FPDSCR = 0x00c40000;
  round("a handler with floats", compute);
  show("  fpscr", noted[0]);
  FPDSCR = 0x00040000;
  FPCCR &= ~LSPEN;
  round("at once", nothing);
  FPCCR |= LSPEN | CLRONRET;
  round("cleared", compute);
  FPCCR &= ~(ASPEN | CLRONRET);
  __asm volatile("mrs r0, control\n bic r0, #12\n msr control, r0\n isb" ::: "r0");
  round("not at all", compute);
  FPCCR |= ASPEN;
  round("chained", pend_systick);
  show("  its link", noted[4]);
  show("  its fpccr", noted[5]);
  expect(noted[6] == seen.address, "the same place");

  // A thread whose stack becomes inaccessible: region 0 covers it, the default map the rest.
  MPU_RNR = 0;
  MPU_RBAR = (uint32_t)thread_stack | 4 | 1;
  MPU_RLAR = ((uint32_t)thread_stack + sizeof thread_stack - 32) | 1;
  SHCSR |= 1u << 16;
  on_thread_stack("refused", compute_without_stack);
  SHPR(4) = 0x60;
  on_thread_stack("refused, later", compute_without_stack);
  SHPR(4) = 0x20;
  SHCSR &= ~(1u << 16);
  on_thread_stack("refused, without a handler", compute_without_stack);
  return 0;
}
