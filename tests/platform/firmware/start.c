// SPDX-License-Identifier: Apache-2.0
// Vector table, reset and console of the test programs.
#include "board.h"

extern uint32_t stack_top[];
extern uint32_t bss_start[], bss_end[], data_start[], data_end[], data_load[];

static void forever(void) {
  for (;;) {
  }
}

#define WEAK(name)                        \
  __attribute__((weak)) void name(void) { \
    forever();                            \
  }
WEAK(NMI_Handler)
WEAK(HardFault_Handler)
WEAK(BusFault_Handler)
WEAK(UsageFault_Handler)
WEAK(SVC_Handler)
WEAK(PendSV_Handler)
WEAK(SysTick_Handler)
WEAK(irq0)
WEAK(irq1)
WEAK(irq2)
WEAK(npu_irq)
#if !defined(CORSTONE_320)
WEAK(uart_receive_irq)
WEAK(uart_transmit_irq)
WEAK(uart_combined_irq)
#endif

void Reset_Handler(void) {
  REG(0xe000ed88) = 0xf << 20;  // CPACR: the floating-point unit is off after reset
  __asm volatile("dsb\n\tisb" ::: "memory");
  uint32_t* from = data_load;
  for (uint32_t* to = data_start; to < data_end; ++to) *to = *from++;
  for (uint32_t* to = bss_start; to < bss_end; ++to) *to = 0;
  finish(main());
}

__attribute__((section(".vectors"), used)) void (*const vectors[16 + NPU_IRQ + 1])(void) = {
    [0] = (void (*)(void))stack_top,
    [1] = Reset_Handler,
    [2] = NMI_Handler,
    [3] = HardFault_Handler,
    [5] = BusFault_Handler,
    [6] = UsageFault_Handler,
    [11] = SVC_Handler,
    [14] = PendSV_Handler,
    [15] = SysTick_Handler,
    [16] = irq0,
    [17] = irq1,
    [18] = irq2,
#if !defined(CORSTONE_320)
    [16 + 33] = uart_receive_irq,
    [16 + 34] = uart_transmit_irq,
    [16 + 43] = uart_combined_irq,
#endif
    [16 + NPU_IRQ] = npu_irq,
};

void put(char c) {
  while ((REG(UART0 + 4) & 1) != 0) {
  }
  REG(UART0) = (uint8_t)c;
}

void print(const char* text) {
  while (*text != '\0') put(*text++);
}

void print_number(uint32_t number) {
  if (number >= 10) print_number(number / 10);
  put((char)('0' + number % 10));
}

void print_hex(uint32_t number) {
  for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[number >> shift & 15]);
}

void report(const char* name, uint32_t number) {
  print(name);
  put(' ');
  print_number(number);
  put('\n');
}

uint32_t semihost(uint32_t operation, const void* argument) {
  register uint32_t r0 __asm("r0") = operation;
  register const void* r1 __asm("r1") = argument;
  __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void finish(int code) {
  print("Application exit code: ");
  if (code < 0) put('-');
  print_number((uint32_t)(code < 0 ? -code : code));
  print(".\n\x04\n");
  for (;;) {
  }
}

void expect(int condition, const char* what) {
  if (condition) return;
  print("wrong: ");
  print(what);
  put('\n');
  finish(1);
}
