// SPDX-License-Identifier: Apache-2.0
// Reset straight into the C library's start-up code.
extern unsigned stack_top[];
extern unsigned data_start[], data_end[], data_load[];
void _start(void);

void Reset_Handler(void) {
  *(volatile unsigned*)0xe000ed88 = 0xf << 20;  // CPACR: the floating-point unit is off after reset
  __asm volatile("dsb\n\tisb" ::: "memory");
  const unsigned* from = data_load;
  for (unsigned* to = data_start; to < data_end; ++to) *to = *from++;
  _start();
}

__attribute__((section(".vectors"), used)) void (*const vectors[2])(void) = {(void (*)(void))stack_top,
                                                                             Reset_Handler};
