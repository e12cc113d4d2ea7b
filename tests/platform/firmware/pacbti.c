// SPDX-License-Identifier: Apache-2.0
// A program that the compiler protects (-mbranch-protection=standard): return addresses are signed, indirect
// branches land on BTI. Then two attacks, which fault.
#include "board.h"

static volatile uint32_t faults, ticks;
static volatile uint32_t status;
static void (*volatile recover)(void);

static void set_control(uint32_t bits) {
  uint32_t control;
  __asm volatile("mrs %0, control" : "=r"(control));
  __asm volatile("msr control, %0\n isb" ::"r"(control | bits) : "memory");
}

// Continues at recover() with the previous stack.
__attribute__((used)) static void resume(void) {
  recover();
}
__attribute__((used)) void note_fault(uint32_t* frame) {
  ++faults;
  status = CFSR;
  CFSR = CFSR;
  frame[6] = (uint32_t)resume & ~1u;
  frame[7] &= ~(1u << 21);  // EPSR.B
}
__attribute__((naked)) void UsageFault_Handler(void) {
  __asm volatile("mov r0, sp\n b note_fault\n");
}
void SysTick_Handler(void) {
  ++ticks;
}

// --- calls that the protection must not disturb

typedef uint32_t (*function)(uint32_t);
__attribute__((noinline)) static uint32_t half(uint32_t x) {
  return x / 2;
}
__attribute__((noinline)) static uint32_t triple(uint32_t x) {
  return 3 * x + 1;
}
static function volatile steps[] = {half, triple};

__attribute__((noinline)) static uint32_t collatz(uint32_t x, uint32_t depth) {
  if (x == 1) return depth;
  return collatz(steps[x & 1](x), depth + 1) + 0 * ticks;
}

__attribute__((noinline)) static uint32_t choose(uint32_t x) {
  switch (x) {
    case 0:
      return triple(1);
    case 1:
      return triple(2) + ticks * 0;
    case 2:
      return half(triple(5));
    case 3:
      return half(9) ^ triple(x);
    case 4:
      return triple(triple(x));
    case 5:
      return half(half(100)) + x;
    default:
      return x;
  }
}

// --- attacks

__attribute__((used)) static void hijacked(void) {
  print("hijacked\n");
  finish(2);
}
/// Overwrites its return address: the word above r7 where the compiler keeps LR.
__attribute__((noinline)) static void smash(void) {
  uint32_t* volatile frame = __builtin_frame_address(0);
  frame[1] = (uint32_t)hijacked | 1;
  __asm volatile("" ::: "memory");
  half(3);
}
/// A function pointer into the middle of a function.
__attribute__((noinline)) static void jump_inside(void) {
  const function inside = (function)((uint32_t)triple + 4);
  inside(1);
  print("landed inside\n");
  finish(3);
}

static void end(void) {
  expect(faults == 2 && status == 1u << 17, "INVSTATE for a pointer to no landing");
  print("landings\n");
  finish(0);
}
static void second(void) {
  expect(faults == 1 && status == 1u << 17, "INVSTATE for a return address that is not signed");
  print("codes\n");
  recover = end;
  jump_inside();
}

int main(void) {
  SHCSR |= 1u << 18;
  expect((REG(0xe000ed74) >> 20 & 15) == 2, "ID_ISAR5");
  __asm volatile(
      "msr pac_key_p_0, %0\n msr pac_key_p_1, %1\n msr pac_key_p_2, %0\n msr pac_key_p_3, %1\n" ::"r"(
          0x12345678),
      "r"(0x9abcdef0));
  set_control(1u << 4 | 1u << 6);
  SYSTICK_LOAD = 97;
  SYSTICK_VALUE = 0;
  SYSTICK_CTRL = 7;
  expect(collatz(27, 0) == 111, "calls");
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 8; ++i) sum += choose(i);
  expect(sum == 4 + 7 + 8 + (4 ^ 10) + 40 + 30 + 6 + 7, "tables");
  expect(ticks > 10, "interrupts");
  SYSTICK_CTRL = 0;
  print("calls\n");
  recover = second;
  smash();
  return 1;
}
