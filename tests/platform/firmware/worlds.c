// SPDX-License-Identifier: Apache-2.0
// A Secure and a Non-secure program: attribution of addresses, calls in both directions, interrupts of both
// worlds, and accesses that are refused. Code and data are one memory at two addresses: 0x10000000 and
// 0x30000000 are Secure, 0x00000000 and 0x20000000 are not.
#include "board.h"

#define NON_SECURE(address) ((uint32_t)(address) & ~0x10000000u)
#define NS_ICSR REG(0xe002ed04)
#define NS_VTOR REG(0xe002ed08)
#define NS_SHPR(exception) (*(volatile uint8_t*)(0xe002ed14 + (exception)))
#define SFSR REG(0xe000ede4)
#define SFAR REG(0xe000ede8)

static uint32_t shared[16];                                    // writable by Non-secure code
static uint32_t other_stack[256] __attribute__((aligned(8)));  // of the Non-secure world
static uint32_t other_vectors[32] __attribute__((aligned(128)));
static volatile uint32_t faults, seen;

static void region(uint32_t number, uint32_t from, uint32_t to, uint32_t callable) {
  REG(0xe000edd8) = number;
  REG(0xe000eddc) = from;
  REG(0xe000ede0) = (to & ~31u) | callable << 1 | 1;
}

static uint32_t test_target(uint32_t address) {
  uint32_t result;
  __asm volatile("tt %0, %1" : "=r"(result) : "r"(address));
  return result;
}

// --- Secure functions for Non-secure callers

__attribute__((used)) uint32_t twice(uint32_t value) {
  return 2 * value;
}
__attribute__((naked, aligned(32), used)) void gateway(void) {
  __asm volatile(
      "sg\n"
      "push {r4, lr}\n"
      "bl twice\n"
      "pop {r4, lr}\n"
      "bxns lr\n"
      ".balign 32\n");
}

// --- Non-secure functions: no absolute addresses, so they run at their Non-secure address

__attribute__((naked)) void add_one(void) {
  __asm volatile("adds r0, #1\n bx lr\n");
}
// r0 = value, r1 = gateway: its result + 1.
__attribute__((naked)) void call_gateway(void) {
  __asm volatile("push {r4, lr}\n blx r1\n adds r0, #1\n pop {r4, pc}\n");
}
// r0 = address: loads the word there.
__attribute__((naked)) void load_word(void) {
  __asm volatile("ldr r0, [r0]\n nop\n bx lr\n");
}
// Stores r4 (which must not be the Secure program's), IPSR and a mark at 0x20007000.
__attribute__((naked)) void other_pendsv(void) {
  __asm volatile(
      "movw r0, #0x7000\n movt r0, #0x2000\n"
      "str r4, [r0]\n"
      "mrs r1, ipsr\n str r1, [r0, #4]\n"
      "movs r1, #77\n str r1, [r0, #8]\n"
      "bx lr\n");
}

static uint32_t call(void (*function)(void), uint32_t a, uint32_t b) {
  register uint32_t r0 __asm("r0") = a;
  register uint32_t r1 __asm("r1") = b;
  register uint32_t target __asm("r2") = NON_SECURE(function) & ~1u;
  __asm volatile("blxns r2" : "+r"(r0), "+r"(r1), "+r"(target)::"r3", "r12", "lr", "memory", "cc");
  return r0;
}

// --- handlers

__attribute__((used)) void note_fault(uint32_t excReturn) {
  ++faults;
  uint32_t* frame;
  // The frame is on the stack of the world that the fault came from.
  if ((excReturn & 0x40) != 0) {
    finish(9);
  }
  __asm volatile("mrs %0, msp_ns" : "=r"(frame));
  frame[6] += 2;  // after the load
}
__attribute__((naked)) void secure_fault(void) {
  __asm volatile("push {r4, lr}\n mov r0, lr\n bl note_fault\n pop {r4, pc}\n");
}
void irq0(void) {
  seen = REG(0x20007008);  // Secure code reads Non-secure memory
}

int main(void) {
  REG(0x50080014) = 1;  // gateways may be in code memory
  region(0, 0x00000000, 0x0007ffe0, 0);
  region(1, (uint32_t)gateway & ~31u, (uint32_t)gateway & ~31u, 1);
  region(2, 0x20000000, 0x2007ffe0, 0);
  REG(0xe000edd0) = 1;
  __asm volatile("dsb\n isb");
  expect((test_target(0x20000100) >> 20 & 7) == 3, "Non-secure memory, readable and writable");
  expect((test_target(0x30000100) >> 20 & 7) == 4, "Secure memory");
  expect((test_target(0x20000100) >> 8 & 0xff) == 2 && (test_target(0x20000100) >> 17 & 1) == 1,
         "its region");
  print("attributes\n");

  const uint32_t stack = NON_SECURE(other_stack) + sizeof other_stack;
  __asm volatile("msr msp_ns, %0" ::"r"(stack));
  expect(call(add_one, 41, 0) == 42, "a Non-secure function");
  expect(call(call_gateway, 21, (uint32_t)gateway | 1) == 43, "a gateway");
  uint32_t after;
  __asm volatile("mrs %0, msp_ns" : "=r"(after));
  expect(after == stack, "the Non-secure stack");
  print("calls\n");

  for (int i = 0; i < 32; ++i) other_vectors[i] = NON_SECURE(other_pendsv) | 1;
  NS_VTOR = NON_SECURE(other_vectors);
  uint32_t kept;
  REG(0x30007008) = 0;
  __asm volatile(
      "ldr r4, =0x5ec2e700\n"
      "str %2, [%1]\n dsb\n isb\n nop\n"
      "mov %0, r4\n"
      : "=&r"(kept)
      : "r"(0xe002ed04), "r"(1u << 28)
      : "r4", "memory");
  expect(REG(0x30007008) == 77, "the Non-secure PendSV");
  expect(REG(0x30007000) == 0, "it does not see Secure registers");
  expect(REG(0x30007004) == 14, "its number");
  expect(kept == 0x5ec2e700, "registers come back");
  NVIC_ENABLE(0) = 1;
  NVIC_PEND(0) = 1;
  __asm volatile("dsb\n isb");
  expect(seen == 77, "a Secure interrupt");
  // An interrupt assigned to the other world runs its handler there.
  REG(0xe000e380) = 2;
  NVIC_ENABLE(1) = 2;
  REG(0x30007008) = 0;
  NVIC_PEND(1) = 2;
  __asm volatile("dsb\n isb");
  expect(REG(0x30007008) == 77 && REG(0x30007004) == 17, "a Non-secure interrupt");
  print("interrupts\n");

  static uint32_t vectors_copy[64] __attribute__((aligned(256)));
  for (int i = 0; i < 64; ++i) vectors_copy[i] = ((volatile uint32_t*)0x10000000)[i];
  vectors_copy[7] = (uint32_t)secure_fault | 1;
  REG(0xe000ed08) = (uint32_t)vectors_copy;
  SHCSR |= 1u << 19;
  call(load_word, (uint32_t)shared, 0);
  expect(faults == 1, "one fault");
  expect(SFSR == 0x48 && SFAR == (uint32_t)shared, "its address");
  print("faults\n");
  return 0;
}
