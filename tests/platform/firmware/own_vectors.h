// SPDX-License-Identifier: Apache-2.0
// A vector table in RAM, for interrupts beyond the few in start.c.
#pragma once

#include "board.h"

#define OWN_VECTORS (16 + 240)
static void (*own_vectors[OWN_VECTORS])(void) __attribute__((aligned(1024)));

static inline void use_own_vectors(void) {
  for (int i = 0; i < 16; ++i) own_vectors[i] = ((void (**)(void))REG(0xe000ed08))[i];
  REG(0xe000ed08) = (uint32_t)own_vectors;
}

static inline void on_interrupt(uint32_t n, void (*handler)(void)) {
  own_vectors[16 + n] = handler;
  NVIC_ENABLE(n) = 1u << n % 32;
}
