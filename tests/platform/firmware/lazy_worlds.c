// SPDX-License-Identifier: Apache-2.0
// Floating-point state of a Secure program around Non-secure handlers and functions, and the other way round.
// Code and data are one memory at two addresses, as in worlds.c. Prints what both worlds see.
#include "board.h"

#define NON_SECURE(address) ((uint32_t)(address) & ~0x10000000u)
#define FPCCR REG(0xe000ef34)
#define SFSR REG(0xe000ede4)
#define TS (1u << 26)
#define LSPEN (1u << 30)

/// What the Non-secure handler stores: EXC_RETURN, R4, its FPCCR, S1 before it wrote to it.
#define LEFT ((volatile uint32_t*)0x30007000)

static uint32_t other_stack[256] __attribute__((aligned(8)));
static uint32_t other_vectors[32] __attribute__((aligned(128)));
static uint32_t context[34] __attribute__((aligned(8)));
static volatile uint32_t links[4], secure_fault_status;

static void region(uint32_t number, uint32_t from, uint32_t to) {
  REG(0xe000edd8) = number;
  REG(0xe000eddc) = from;
  REG(0xe000ede0) = (to & ~31u) | 1;
}

// --- Non-secure code: contains no absolute addresses

__attribute__((naked)) void other_plain(void) {
  __asm volatile(
      "movw r0, #0x7000\n movt r0, #0x2000\n"
      "str lr, [r0]\n str r4, [r0, #4]\n"
      "movw r1, #0xef34\n movt r1, #0xe000\n ldr r2, [r1]\n str r2, [r0, #8]\n"
      "bx lr\n");
}
__attribute__((naked)) void other_floats(void) {
  __asm volatile(
      "movw r0, #0x7000\n movt r0, #0x2000\n"
      "str lr, [r0]\n str r4, [r0, #4]\n"
      "vmov r1, s1\n str r1, [r0, #12]\n"
      "vmov.f32 s1, #2.0\n"
      "movw r1, #0xef34\n movt r1, #0xe000\n ldr r2, [r1]\n str r2, [r0, #8]\n"
      "bx lr\n");
}
__attribute__((naked)) void other_function(void) {
  __asm volatile("adds r0, #1\n bx lr\n");
}
__attribute__((naked)) void other_function_with_floats(void) {
  __asm volatile("vmov.f32 s1, #3.0\n vmov r0, s2\n bx lr\n");
}
/// Computes until the word at [r0] changes; returns S1.
__attribute__((naked)) void other_loop(void) {
  __asm volatile("vmov.f32 s1, #3.0\n 1: ldr r1, [r0]\n cmp r1, #0\n beq 1b\n vmov r0, s1\n bx lr\n");
}

static uint32_t call(void (*function)(void), uint32_t a) {
  register uint32_t r0 __asm("r0") = a;
  register uint32_t target __asm("r2") = NON_SECURE(function) & ~1u;
  __asm volatile("blxns r2" : "+r"(r0), "+r"(target)::"r1", "r3", "r12", "lr", "memory", "cc");
  return r0;
}

// --- Secure handlers

__attribute__((used)) void note(uint32_t link) {
  links[0] = link;
  links[1] = FPCCR;
  REG(0xe002ed04) = 1u << 28;  // the Non-secure PendSV follows
}
__attribute__((naked)) void irq0(void) {
  __asm volatile("mov r0, lr\n b note\n");
}
/// Computes, then ends the Non-secure loop.
__attribute__((naked)) void SysTick_Handler(void) {
  __asm volatile(
      "ldr r0, =links\n str lr, [r0, #8]\n"
      "vmov.f32 s1, #5.0\n"
      "ldr r1, =0xe000e010\n movs r2, #0\n str r2, [r1]\n"
      "ldr r1, =0xe000ef34\n ldr r2, [r1]\n str r2, [r0, #12]\n"
      "ldr r1, =0x30007010\n movs r2, #1\n str r2, [r1]\n"
      "bx lr\n");
}
__attribute__((naked)) static void secure_fault(void) {
  __asm volatile(
      "ldr r0, =0xe000ede4\n ldr r1, [r0]\n str r1, [r0]\n ldr r2, =secure_fault_status\n str r1, [r2]\n"
      "ldr r1, [sp, #24]\n adds r1, #4\n str r1, [sp, #24]\n bx lr\n");
}

static volatile uint32_t usage_faults;
__attribute__((naked)) void UsageFault_Handler(void) {
  __asm volatile(
      "ldr r0, =usage_faults\n ldr r1, [r0]\n adds r1, #1\n str r1, [r0]\n"
      "ldr r1, [sp, #24]\n adds r1, #4\n str r1, [sp, #24]\n bx lr\n");
}

static void show(const char* name, uint32_t value) {
  print(name);
  put(' ');
  print_hex(value);
  put('\n');
}

#define FLOATS "s0", "s1", "s2", "s16"

static inline __attribute__((always_inline)) void fill(void) {
  __asm volatile(
      "ldr r0, =0x40000001\n vmov s1, r0\n adds r0, #1\n vmov s2, r0\n adds r0, #14\n vmov s16, r0\n" ::
          : "r0", FLOATS);
}
static inline __attribute__((always_inline)) void show_floats(void) {
  uint32_t one, two, sixteen;
  __asm volatile("vmov %0, s1\n vmov %1, s2\n vmov %2, s16\n" : "=r"(one), "=r"(two), "=r"(sixteen));
  show("  s1", one);
  show("  s2", two);
  show("  s16", sixteen);
}

static void interrupt(const char* name, void (*handler)(void), int visible) {
  for (int i = 0; i < 32; ++i) other_vectors[i] = NON_SECURE(handler) | 1;
  LEFT[3] = 0;
  fill();
  __asm volatile(
      "ldr r4, =0x5ec2e700\n ldr r0, =0xe002ed04\n mov r1, #0x10000000\n str r1, [r0]\n dsb\n isb\n" ::
          : "r0", "r1", "r4", "memory");
  uint32_t one, two, sixteen;
  __asm volatile("vmov %0, s1\n vmov %1, s2\n vmov %2, s16\n" : "=r"(one), "=r"(two), "=r"(sixteen));
  print(name);
  put('\n');
  show("  link", LEFT[0]);
  show("  r4", LEFT[1]);
  show("  its fpccr", LEFT[2]);
  if (visible) show("  it sees", LEFT[3]);
  show("  fpccr", FPCCR);
  show("  s1", one);
  show("  s2", two);
  show("  s16", sixteen);
}

static void call_with_context(const char* name, void (*function)(void)) {
  print(name);
  put('\n');
  for (int i = 0; i < 34; ++i) context[i] = 0;
  fill();
  __asm volatile("vlstm %0" ::"r"(context) : "memory");
  const uint32_t control = FPCCR;
  const uint32_t result = call(function, 7);
  const uint32_t behind = FPCCR;
  __asm volatile("vlldm %0" ::"r"(context) : "memory");
  const uint32_t last = FPCCR;
  uint32_t one, two, sixteen;
  __asm volatile("vmov %0, s1\n vmov %1, s2\n vmov %2, s16\n" : "=r"(one), "=r"(two), "=r"(sixteen));
  show("  fpccr", control);
  show("  result", result);
  show("  fpccr", behind);
  show("  fpccr", last);
  show("  stored", context[1]);
  show("  s1", one);
  show("  s2", two);
  show("  s16", sixteen);
}

static void no_context(void) {
  __asm volatile("mrs r0, control\n bic r0, #12\n msr control, r0\n isb" ::: "r0");
}

int main(void) {
  REG(UART0 + 8) = 1;
  REG(0x50080014) = 1;
  region(0, 0x00000000, 0x0007ffe0);
  region(1, 0x20000000, 0x2007ffe0);
  REG(0xe000edd0) = 1;
  REG(0xe000ed8c) = 3u << 10;
  REG(0xe002ed88) = 0xf << 20;
  static uint32_t vectors[64] __attribute__((aligned(256)));
  for (int i = 0; i < 64; ++i) vectors[i] = ((volatile uint32_t*)0x10000000)[i];
  vectors[7] = (uint32_t)secure_fault | 1;
  REG(0xe000ed08) = (uint32_t)vectors;
  SHCSR |= 1u << 19;
  REG(0xe002ed08) = NON_SECURE(other_vectors);
  REG(0xe002ed20) = 0x80u << 16;  // the Non-secure PendSV
  NVIC_PRIORITY(0) = 0x40;
  const uint32_t stack = NON_SECURE(other_stack) + sizeof other_stack;
  __asm volatile("msr msp_ns, %0\n dsb\n isb" ::"r"(stack));

  interrupt("a Non-secure handler", other_plain, 0);
  interrupt("with floats", other_floats, 0);
  FPCCR |= TS;
  interrupt("with floats, all hidden", other_floats, 1);
  FPCCR &= ~LSPEN;
  interrupt("at once", other_floats, 1);
  FPCCR |= LSPEN;

  call_with_context("a Non-secure function", other_function);
  call_with_context("with floats", other_function_with_floats);

  print("two contexts\n");
  fill();
  __asm volatile("vlstm %0\n vlstm %0" ::"r"(context) : "memory");
  show("  status", secure_fault_status);
  __asm volatile("vlldm %0" ::"r"(context) : "memory");

  print("cleared\n");
  fill();
  __asm volatile("vscclrm {s1-s2, vpr}" ::: FLOATS);
  show_floats();
  no_context();
  __asm volatile("vscclrm {s16, vpr}" ::: FLOATS);
  uint32_t control;
  __asm volatile("mrs %0, control" : "=r"(control));
  show("  control", control);
  show_floats();
  no_context();
  FPCCR = FPCCR;
  uint32_t word[2] = {0, 0};
  __asm volatile("vstr fpcxtns, [%0]" ::"r"(word) : "memory");
  show("  fpcxtns", word[0]);

  // Chained: a Secure handler, then a Non-secure one.
  fill();
  for (int i = 0; i < 32; ++i) other_vectors[i] = NON_SECURE(other_floats) | 1;
  NVIC_ENABLE(0) = 1;
  NVIC_PEND(0) = 1;
  __asm volatile("dsb\n isb");
  print("chained\n");
  show("  link", links[0]);
  show("  fpccr", links[1]);
  show("  link", LEFT[0]);
  show("  r4", LEFT[1]);
  show("  it sees", LEFT[3]);
  show_floats();

  // A Non-secure program, and a Secure handler that also uses floats.
  LEFT[4] = 0;
  SYSTICK_LOAD = 200;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 7;
  fill();
  __asm volatile("vlstm %0" ::"r"(context) : "memory");
  const uint32_t three = call(other_loop, 0x20007010);
  __asm volatile("vlldm %0" ::"r"(context) : "memory");
  print("a Secure handler\n");
  show("  link", links[2]);
  show("  fpccr", links[3]);
  show("  s1", three);
  show_floats();

  // The code at both ends of a Secure entry function while the unit is unused and off.
  print("off\n");
  no_context();
  SHCSR |= 1u << 18;
  REG(0xe000ed88) = 0;
  __asm volatile("dsb\n isb" ::: "memory");
  word[0] = 0;
  __asm volatile("vstr fpcxtns, [%0]\n vldr fpcxtns, [%0]" ::"r"(word) : "memory");
  show("  fpcxtns", word[0]);
  show("  faults", usage_faults);
  __asm volatile("vlstm %0\n vlldm %0" ::"r"(context) : "memory");
  show("  faults", usage_faults);
  __asm volatile("vscclrm {s0, vpr}" ::: FLOATS);
  show("  faults", usage_faults);
  __asm volatile("vstr fpcxts, [%0]" ::"r"(word) : "memory");
  show("  faults", usage_faults);
  REG(0xe000ed88) = 0xf << 20;
  __asm volatile("dsb\n isb" ::: "memory");
  return 0;
}
