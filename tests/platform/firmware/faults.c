// SPDX-License-Identifier: Apache-2.0
// Causes the fault that the first letter of the command line selects.
#include "board.h"

static char line[128];
static volatile uint32_t from_handler;

void HardFault_Handler(void) {
  print("Hard fault. cfsr=");
  print_hex(CFSR);
  print(" hfsr=");
  print_hex(HFSR);
  print(" bfar=");
  print_hex(BFAR);
  put('\n');
  if (from_handler != 0) *(volatile uint32_t*)0xf0000000 = 1;
  finish(1);
}
// Skips the faulting instruction, which has four bytes.
__attribute__((naked)) void UsageFault_Handler(void) {
  __asm volatile("ldr r0, [sp, #24]\n adds r0, #4\n str r0, [sp, #24]\n bx lr\n");
}
void BusFault_Handler(void) {
  print("BusFault\n");
  finish(2);
}
void SysTick_Handler(void) {}

__attribute__((noinline)) static uint32_t load(uint32_t address) {
  return *(volatile uint32_t*)address;
}

/// Continues as a thread with stack pointer `top` and limit `bottom`, and pends PendSV at once.
static void interrupt_on(const uint32_t* bottom, const uint32_t* top) {
  __asm volatile(
      "msr psplim, %0\n msr psp, %1\n movs r0, #2\n msr control, r0\n isb\n str %2, [%3]\n dsb\n isb" ::"r"(
          bottom),
      "r"(top), "r"(1u << 28), "r"(0xe000ed04)
      : "r0", "memory");
}
void PendSV_Handler(void) {
  print("PendSV\n");
  finish(3);
}

static uint32_t small[32] __attribute__((aligned(32)));

int main(void) {
  struct {
    char* text;
    uint32_t size;
  } block = {line, sizeof line};
  expect(semihost(0x15, &block) == 0, "SYS_GET_CMDLINE");
  const char* mode = line;
  while (*mode != ' ' && *mode != '\0') ++mode;
  if (*mode == ' ') ++mode;
  switch (*mode) {
    case 'u':  // undefined instruction
      __asm volatile("udf #255");
      break;
    case 'h':  // the handler recovers
      SHCSR |= 1u << 18;
      __asm volatile("udf.w #1");
      expect((CFSR & 1u << 16) != 0, "UNDEFINSTR");
      print("recovered\n");
      return 0;
    case 'l':  // load from an unmapped address
      load(0xf0000000);
      break;
    case 's':  // store to an unmapped address, with its own handler
      SHCSR |= 1u << 17;
      *(volatile uint32_t*)0xf0000010 = 1;
      break;
    case 'x':  // jump to an unmapped address
      ((void (*)(void))0xf0000001)();
      break;
    case 'a':  // ARM state
      __asm volatile("ldr r0, =0x10000100\n bx r0" ::: "r0");
      break;
    case 'b':
      __asm volatile("bkpt 7");
      break;
    case 'd':  // a fault in the fault handler
      from_handler = 1;
      load(0xf0000000);
      break;
    case 'o':  // below the stack limit
      __asm volatile("mov r0, sp\n subs r0, #64\n msr msplim, r0\n sub sp, sp, #128\n push {r0}" ::: "r0");
      break;
    case 'k':  // the frame of an exception exceeds the limit
      interrupt_on(small, small + 4);
      break;
    case 'v':  // the MPU rejects the frame
      REG(0xe000ed98) = 0;
      REG(0xe000ed9c) = (uint32_t)small | 4 | 1;     // read-only, not executable
      REG(0xe000eda0) = ((uint32_t)small + 96) | 1;  // 128 bytes
      REG(0xe000ed94) = 5;                           // enabled, default map for all else
      interrupt_on(0, small + 32);
      break;
    case 'q':  // unprivileged: the MPU stays as it is
      __asm volatile("mov r0, #1\n msr control, r0\n isb" ::: "r0");
      REG(0xe000ed94) = 0;
      break;
    case 'n':  // accesses where no device is
      (void)REG(0x40123454);
      REG(0x50123458) = 1;
      (void)REG(0x40123454);
      (void)REG(0xe000edf0);
      REG(0xe0002000) = 0;
      REG(0xe0002000) = 3;
      return 0;
    case 'w':  // waits for an interrupt that never comes
      wfi();
      break;
    case 'e':  // endless
      for (;;) {
      }
    case 'm':  // endless, interrupts masked, one pending
      SYSTICK_LOAD = 100;
      SYSTICK_VALUE = 0;
      cpsid();
      SYSTICK_CTRL = 7;
      for (;;) {
      }
    case 't':  // takes too long
      for (;;) {
        __asm volatile("nop");
        DWT_CTRL;
        __asm volatile("nop\n nop\n nop");
      }
    case 'g':  // guarded by the memory protection unit: may be read, not written
      REG(0xe000ed98) = 3;
      REG(0xe000ed9c) = 0x30040000 | 2 << 1 | 1;
      REG(0xe000eda0) = 0x30040fe0 | 1;
      REG(0xe000ed94) = 5;
      __asm volatile("dsb\n isb");
      load(0x30040010);
      *(volatile uint32_t*)0x30040010 = 1;
      break;
    case 'r':
      REG(0xe000ed0c) = 0x05fa0004;
      for (;;) {
      }
    case 'p':                     // unprivileged: special registers stay unchanged
      REG(0x500800c8) = 1u << 3;  // but the console is accessible
      __asm volatile("mov r0, #1\n msr control, r0\n isb" ::: "r0");
      __asm volatile("cpsid i");
      {
        uint32_t mask, control;
        __asm volatile("mrs %0, primask\n mrs %1, control" : "=r"(mask), "=r"(control));
        expect(mask == 0 && (control & 1) == 1, "unprivileged");
      }
      print("unprivileged\n");
      return 0;
    default:
      break;
  }
  print("nothing happened\n");
  return 9;
}
