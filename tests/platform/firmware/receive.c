// SPDX-License-Identifier: Apache-2.0
// UART 0 receives a line by interrupts, then one by polling; sends both back.
#include "board.h"

#define STATE REG(UART0 + 0x4)
#define CTRL REG(UART0 + 0x8)
#define INTSTATUS REG(UART0 + 0xc)
#define DIVIDER REG(UART0 + 0x10)
#define RECEIVE_IRQ 33u
#define TRANSMIT_IRQ 34u
#define COMBINED_IRQ 43u

static volatile char line[64];
static volatile unsigned length, received, combined, sent;

void uart_receive_irq(void) {
  expect((INTSTATUS & 2) != 0 && (STATE & 2) != 0, "the receive interrupt says so");
  INTSTATUS = 2;
  line[length++ % 64] = (char)REG(UART0);
  expect((STATE & 2) == 0, "reading empties the buffer");
  ++received;
}

void uart_transmit_irq(void) {
  INTSTATUS = 1;
  ++sent;
}

void uart_combined_irq(void) {
  ++combined;
}

static void show(void) {
  for (unsigned i = 0; i < length; ++i) put(line[i]);
  length = 0;
}

int main(void) {
  DIVIDER = 217;
  expect((STATE & 2) == 0, "nothing is received while reception is off");
  NVIC_ENABLE(RECEIVE_IRQ) = 1u << RECEIVE_IRQ % 32;
  NVIC_ENABLE(COMBINED_IRQ) = 1u << COMBINED_IRQ % 32;
  // The receive interrupt goes first, and clears the cause of the combined one.
  NVIC_PRIORITY(RECEIVE_IRQ) = 0x20;
  NVIC_PRIORITY(COMBINED_IRQ) = 0x40;
  CTRL = 1 | 2 | 8;  // transmit, receive, receive interrupt
  while (length == 0 || line[length - 1] != '\n') wfi();
  report("received", received);
  report("combined", combined);
  show();
  CTRL = 1 | 2;
  while (length == 0 || line[length - 1] != '\n') {
    if ((STATE & 2) != 0) line[length++ % 64] = (char)REG(UART0);
  }
  expect(INTSTATUS == 0, "polling raises no interrupt");
  show();
  NVIC_ENABLE(TRANSMIT_IRQ) = 1u << TRANSMIT_IRQ % 32;
  CTRL = 1 | 4;  // transmit, transmit interrupt
  REG(UART0) = '!';
  while (sent != 1) {
  }
  REG(UART0) = '\n';
  while (sent != 2) {
  }
  CTRL = 1;
  report("sent", sent);
  return 0;
}
