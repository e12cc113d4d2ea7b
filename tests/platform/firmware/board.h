// SPDX-License-Identifier: Apache-2.0
// Shared by the test programs: registers, a console, exit. No C library.
#pragma once

#include <stdint.h>

#define REG(address) (*(volatile uint32_t*)(address))

#if defined(CORSTONE_320)
#define UART0 0x58203000u
#define NPU 0x50004000u
#define NPU_IRQ 16u
#define TIMING_ADAPTER0 0x50006000u
#else
#define UART0 0x59303000u
#define NPU 0x48102000u
#define NPU_IRQ 56u
#define TIMING_ADAPTER0 0x58103000u
#define SCC 0x59300000u
#endif

#define SYSTICK_CTRL REG(0xe000e010)
#define SYSTICK_LOAD REG(0xe000e014)
#define SYSTICK_VALUE REG(0xe000e018)
#define NVIC_ENABLE(n) REG(0xe000e100 + 4 * ((n) / 32))
#define NVIC_PEND(n) REG(0xe000e200 + 4 * ((n) / 32))
#define NVIC_PRIORITY(n) (*(volatile uint8_t*)(0xe000e400 + (n)))
#define ICSR REG(0xe000ed04)
#define SHPR(exception) (*(volatile uint8_t*)(0xe000ed14 + (exception)))
#define SHCSR REG(0xe000ed24)
#define CFSR REG(0xe000ed28)
#define HFSR REG(0xe000ed2c)
#define BFAR REG(0xe000ed38)
#define DEMCR REG(0xe000edfc)
#define DWT_CTRL REG(0xe0001000)
#define DWT_CYCCNT REG(0xe0001004)

/// Handlers: start.c has an endless one for each, programs override them.
void NMI_Handler(void);
void HardFault_Handler(void);
void BusFault_Handler(void);
void UsageFault_Handler(void);
void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);
void irq0(void);
void irq1(void);
void irq2(void);
void npu_irq(void);
void uart_receive_irq(void);
void uart_transmit_irq(void);
void uart_combined_irq(void);

int main(void);

void put(char c);
void print(const char* text);
void print_number(uint32_t number);
void print_hex(uint32_t number);
/// print(name), the number, a newline.
void report(const char* name, uint32_t number);
uint32_t semihost(uint32_t operation, const void* argument);
/// Ends the run as the retargeted C library of FVP firmware does: a line with the code, then EOT.
__attribute__((noreturn)) void finish(int code);
/// Prints what is wrong and ends with code 1 unless `condition`.
void expect(int condition, const char* what);

static inline void cpsid(void) {
  __asm volatile("cpsid i" ::: "memory");
}
static inline void cpsie(void) {
  __asm volatile("cpsie i\n isb" ::: "memory");
}
static inline void wfi(void) {
  __asm volatile("wfi" ::: "memory");
}
static inline void wfe(void) {
  __asm volatile("wfe" ::: "memory");
}
static inline void sev(void) {
  __asm volatile("sev" ::: "memory");
}
