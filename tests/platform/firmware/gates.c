// SPDX-License-Identifier: Apache-2.0
// Protection controllers of a memory and of a peripheral: which transactions pass, what the others read, and
// the interrupts. Prints what it sees; the same image prints the same on other models of the board.
#include "board.h"

#define SACFG(offset) REG(0x50080000 + (offset))
#define NSACFG(offset) REG(0x40080000 + (offset))
#define MPC(offset) REG(0x57000000 + (offset))
#define LUT 0x1c
#define SECURE_SRAM 0x11000000u
#define OTHER_SRAM 0x01000000u
#define SECURE_LEDS 0x59302000u
#define OTHER_LEDS 0x49302000u
#define LEDS_BIT (1u << 2)

static uint32_t other_stack[64] __attribute__((aligned(8)));
static volatile uint32_t faults, status, address;

static void show(const char* name, uint32_t value) {
  print("  ");
  print(name);
  put(' ');
  print_hex(value);
  put('\n');
}

static void region(uint32_t number, uint32_t from, uint32_t to) {
  REG(0xe000edd8) = number;
  REG(0xe000eddc) = from;
  REG(0xe000ede0) = (to & ~31u) | 1;
}

__attribute__((used)) void note_fault(uint32_t* frame) {
  ++faults;
  status = CFSR;
  address = BFAR;
  CFSR = CFSR;
  frame[6] += 4;
}
// The frame is on the stack of the program that faulted.
__attribute__((naked)) void BusFault_Handler(void) {
  __asm volatile("tst lr, #0x40\n ite ne\n movne r0, sp\n mrseq r0, msp_ns\n b note_fault\n");
}
// Restores privileges.
__attribute__((naked)) void SVC_Handler(void) {
  __asm volatile("mrs r1, control\n bic r1, #1\n msr control, r1\n isb\n bx lr\n");
}

// The word at `from`, or `otherwise` if the load faults. Also called at its Non-secure address.
__attribute__((naked, noinline)) uint32_t load(__attribute__((unused)) uint32_t from,
                                               __attribute__((unused)) uint32_t otherwise) {
  __asm volatile("mov r2, r0\n mov r0, r1\n ldr.w r0, [r2]\n nop\n bx lr\n");
}
static uint32_t load_as_other(uint32_t from, uint32_t otherwise) {
  register uint32_t r0 __asm("r0") = from;
  register uint32_t r1 __asm("r1") = otherwise;
  register uint32_t target __asm("r4") = (uint32_t)load & 0x0ffffffe;
  __asm volatile("blxns r4" : "+r"(r0), "+r"(r1), "+r"(target)::"r2", "r3", "r12", "lr", "memory", "cc");
  return r0;
}
static uint32_t load_unprivileged(uint32_t from, uint32_t otherwise) {
  __asm volatile("mrs r1, control\n orr r1, #1\n msr control, r1\n isb\n" ::: "r1", "memory");
  const uint32_t value = load(from, otherwise);
  __asm volatile("svc 0" ::: "r0", "r1", "r2", "r3", "r12", "memory");
  return value;
}

static void set_block(uint32_t value) {
  MPC(0x18) = 0;
  MPC(LUT) = value;
  __asm volatile("dsb\n isb" ::: "memory");
}
static uint32_t block(void) {
  MPC(0x18) = 0;
  return MPC(LUT);
}

static void show_memory(const char* name) {
  print(name);
  put('\n');
  show("Secure", load(SECURE_SRAM + 16, 0xbad));
  show("not Secure", load(OTHER_SRAM + 16, 0xbad));
  show("by another program", load_as_other(OTHER_SRAM + 16, 0xbad));
  show("faults", faults);
  show("status", status);
  show("refused", MPC(0x20));
  show("summary", SACFG(0x1c));
  show("pending", REG(0xe000e200) >> 9 & 1);
  MPC(0x28 - 4) = 1;
  REG(0xe000e280) = 1u << 9;
}

static void show_leds(const char* name) {
  print(name);
  put('\n');
  show("Secure", load(SECURE_LEDS, 0xbad));
  show("not Secure", load(OTHER_LEDS, 0xbad));
  show("by another program", load_as_other(OTHER_LEDS, 0xbad));
  show("faults", faults);
  show("status", SACFG(0x20));
  show("pending", REG(0xe000e200) >> 10 & 1);
  SACFG(0x24) = 0xffffffff;
  REG(0xe000e280) = 1u << 10;
}

int main(void) {
  REG(UART0 + 8) = 1;
  REG(SECURE_SRAM + 16) = 0x1234;
  REG(SECURE_LEDS) = 3;
  print("before\n");
  show("memory", load(OTHER_SRAM + 16, 0xbad));
  show("leds", load(OTHER_LEDS, 0xbad));

  region(0, 0x00000000, 0x010fffe0);
  region(1, 0x20000000, 0x2007ffe0);
  region(2, 0x40000000, 0x4fffffe0);
  REG(0xe000edd0) = 1;
  SHCSR |= 1u << 17;
  const uint32_t stack = ((uint32_t)other_stack & 0x0fffffff) + 0x20000000 + sizeof other_stack;
  __asm volatile("msr msp_ns, %0\n dsb\n isb" ::"r"(stack));
  expect(MPC(0x10) >= 1 && block() == 0, "the table");
  MPC(0x18) = 0;
  expect(MPC(LUT) == 0 && MPC(0x18) == 1, "the index goes on");

  show_memory("a Secure block");
  MPC(0x28) = 1;
  set_block(1);
  show_memory("a Non-secure block");
  SACFG(0x10) = 1;
  MPC(0x00) |= 1u << 4;
  show_memory("with bus errors");
  expect(address == SECURE_SRAM + 16, "BFAR");
  MPC(0x00) &= ~(1u << 4);
  SACFG(0x10) = 0;
  MPC(0x00) |= 1u << 31;
  set_block(0);
  show("locked", block());

  faults = 0;
  show_leds("a Secure peripheral");
  SACFG(0x28) = 1u << 6;
  SACFG(0x88) = LEDS_BIT;
  show_leds("a Non-secure peripheral");
  SACFG(0x10) = 1;
  show_leds("with bus errors");
  SACFG(0x10) = 0;
  print("without privileges\n");
  SACFG(0x88) = 0;
  show("refused", load_unprivileged(SECURE_LEDS, 0xbad));
  SACFG(0xc8) = LEDS_BIT;
  show("open", load_unprivileged(SECURE_LEDS, 0xbad));
  SACFG(0x88) = LEDS_BIT;
  show("refused", load_unprivileged(OTHER_LEDS, 0xbad));
  NSACFG(0xc8) = LEDS_BIT;
  return 0;
}
