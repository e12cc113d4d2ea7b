// SPDX-License-Identifier: Apache-2.0
// The display controller of Corstone-315 and 320: two frames in 16 bits, one in 24, and their interrupts.
#include "own_vectors.h"

#define HDLCD(offset) REG(0x50310000 + (offset))
#define HDLCD_IRQ 133u
#define WIDTH 64u
#define HEIGHT 32u

static __attribute__((section(".npu_ram"), aligned(16))) uint16_t screen[WIDTH * HEIGHT];
static __attribute__((section(".npu_ram"), aligned(16))) uint8_t wide[3 * WIDTH * HEIGHT];
static volatile uint32_t frames, status;

static void shown(void) {
  status = HDLCD(0x1c);
  HDLCD(0x14) = status;
  ++frames;
}

// Off between frames, so that none is seen half drawn.
static void show(void) {
  const uint32_t before = frames;
  HDLCD(0x230) = 1;
  while (frames == before) wfi();
  HDLCD(0x230) = 0;
}

int main(void) {
  use_own_vectors();
  on_interrupt(HDLCD_IRQ, shown);
  expect(HDLCD(0) >> 16 == 0x1cdc, "VERSION");
  for (uint32_t i = 0; i < WIDTH * HEIGHT; ++i) screen[i] = 0x001f;
  HDLCD(0x100) = (uint32_t)screen;
  HDLCD(0x104) = HDLCD(0x10c) = 2 * WIDTH;
  HDLCD(0x108) = HEIGHT - 1;
  // Synchronization, back porch, data, front porch of lines and pixels: 40 x 100 in all.
  const uint32_t lines[4] = {1, 2, HEIGHT - 1, 2}, pixels[4] = {9, 9, WIDTH - 1, 15};
  for (uint32_t i = 0; i < 4; ++i) {
    HDLCD(0x200 + 4 * i) = lines[i];
    HDLCD(0x210 + 4 * i) = pixels[i];
  }
  HDLCD(0x240) = 1u << 3;  // two bytes
  HDLCD(0x244) = 5u << 8 | 11;
  HDLCD(0x248) = 6u << 8 | 5;
  HDLCD(0x24c) = 5u << 8;
  HDLCD(0x18) = 4;  // VSYNC
  show();
  expect(status == 4, "VSYNC");
  for (uint32_t y = 4; y < 8; ++y) {
    for (uint32_t x = 10; x < 20; ++x) screen[y * WIDTH + x] = 0xf800;
  }
  show();
  show();
  // A frame like the one before, then another pixel format.
  for (uint32_t i = 0; i < WIDTH * HEIGHT; ++i) wide[3 * i + 1] = 0xff;
  HDLCD(0x240) = 2u << 3;
  HDLCD(0x244) = 8u << 8 | 16;
  HDLCD(0x248) = 8u << 8 | 8;
  HDLCD(0x24c) = 8u << 8;
  HDLCD(0x104) = HDLCD(0x10c) = 3 * WIDTH;
  HDLCD(0x100) = (uint32_t)wide;
  show();
  HDLCD(0x18) = 6;
  HDLCD(0x100) = 0xf0000000;
  show();
  expect(status == 6, "BUS_ERROR");
  expect(frames == 5, "a frame each time");
  print("shown\n");
  return 0;
}
