// SPDX-License-Identifier: Apache-2.0
// Sound through the audio interface and virtual streams, images through virtual streams. media_test.cpp
// provides the inputs.
#include "own_vectors.h"

#define I2S(offset) REG(0x59301000 + (offset))
#define VSI(n, offset) REG(0x4ff00000 + 0x10000 * (n) + (offset))
#define USER(n, reg) VSI(n, 0x300 + 4 * (reg))
#define I2S_IRQ 50u
#define VSI_IRQ(n) (224u + (n))

#define BLOCK 64u
#define BLOCKS 2u
static uint8_t in[BLOCK * BLOCKS], out[BLOCK * BLOCKS];
static uint8_t picture[16 * 8 * 3 + 16];
static uint8_t frames[2][4 * 2];
static volatile uint32_t received, blocks, ticks;

// --- the audio interface sends back, twice as loud, what it receives

static void sound_irq(void) {
  while ((I2S(0x04) & 1u << 4) == 0) {
    const uint32_t frame = I2S(0x14);
    const int16_t left = (int16_t)(frame >> 16), right = (int16_t)frame;
    I2S(0x10) = (uint32_t)(uint16_t)(2 * left) << 16 | (uint16_t)(2 * right);
    ++received;
  }
}

static void sound(void) {
  expect(I2S(0x04) == (1u << 2 | 1u << 4), "both queues are empty");
  on_interrupt(I2S_IRQ, sound_irq);
  I2S(0x0c) = 384;                   // 16 kHz
  I2S(0x00) = 1 | 4 | 8 | 3u << 12;  // both ways; an interrupt when two frames have arrived
  while (received < 40) wfi();
  I2S(0x00) = 1u << 16;
  expect((I2S(0x08) & 2) == 0, "nothing was lost");
}

// --- streams: sound that comes in blocks and goes out again

static void in_irq(void) {
  VSI(0, 0x08) = 1;
  const uint32_t at = blocks % BLOCKS * BLOCK;
  for (uint32_t i = 0; i < BLOCK; ++i) out[at + i] = in[at + i];
  ++blocks;
}

static void out_irq(void) {
  VSI(1, 0x08) = 1;
  ++ticks;
}

static void stream(uint32_t n, void* buffer, uint32_t size, uint32_t count, uint32_t fromMemory) {
  VSI(n, 0x00) = 1;
  VSI(n, 0x204) = (uint32_t)buffer;
  VSI(n, 0x208) = size;
  VSI(n, 0x20c) = count;
  VSI(n, 0x200) = 1 | fromMemory << 1;
}

static void sound_streams(void) {
  for (uint32_t n = 0; n < 2; ++n) {
    USER(n, 1) = 1;      // channel
    USER(n, 2) = 16;     // bits
    USER(n, 3) = 16000;  // Hz
    USER(n, 0) = 1;
    stream(n, n == 0 ? in : out, BLOCK, BLOCKS, n);
    VSI(n, 0x104) = 2000;  // microseconds: 32 samples
  }
  on_interrupt(VSI_IRQ(0), in_irq);
  on_interrupt(VSI_IRQ(1), out_irq);
  const uint32_t before = DWT_CYCCNT;
  VSI(0, 0x100) = 1 | 2 | 4 | 8;
  while (blocks < 1) wfi();
  expect(DWT_CYCCNT - before >= 50000, "a block takes 2 ms");
  VSI(1, 0x100) = 1 | 2 | 4 | 8;
  while (ticks < 3) wfi();
  VSI(0, 0x100) = 0;
  VSI(1, 0x100) = 0;
  expect(VSI(1, 0x108) == 3 && VSI(1, 0x210) == 1, "three blocks of two");
}

// --- images: one from a file, scaled down, then back as grey; the driver's registers

static void video(void) {
  USER(4, 6) = 16;
  USER(4, 7) = 8;
  USER(4, 8) = 2;  // RGB888
  USER(4, 9) = 25;
  USER(4, 12) = 1;
  expect(USER(4, 5) == 1, "there is a file");
  USER(4, 1) = 4;  // discard frames
  USER(4, 1) = 1;  // one frame
  expect((USER(4, 2) & 3) == 3, "active and empty");
  stream(4, picture, 16 * 8 * 3, 1, 0);
  VSI(4, 0x104) = 40000;
  VSI(4, 0x100) = 1 | 4 | 8;
  while ((VSI(4, 0x0c) & 1) == 0) {
  }
  expect((VSI(4, 0x0c) & 8) != 0, "the last frame says so");
  expect((USER(4, 2) & 7) == 4 && USER(4, 11) == 1, "no longer active, and full");
  USER(4, 10) = 0;
  expect((USER(4, 2) & 6) == 2, "the frame is free again");
  report("red", picture[0]);
  report("blue", picture[16 * 8 * 3 - 1]);
  USER(6, 0) = 1;  // out
  USER(6, 6) = 4;
  USER(6, 7) = 2;
  USER(6, 8) = 1;  // grey
  USER(6, 12) = 2;
  USER(6, 1) = 1 | 2;
  for (uint32_t i = 0; i < sizeof frames[0]; ++i) {
    frames[0][i] = (uint8_t)(i * 30);
    frames[1][i] = 255;
  }
  USER(6, 10) = 0;
  USER(6, 10) = 0;  // two frames are ready
  stream(6, frames, sizeof frames[0], 2, 1);
  VSI(6, 0x104) = 1000;
  VSI(6, 0x100) = 1 | 2 | 8;
  while (VSI(6, 0x108) < 2) {
  }
  VSI(6, 0x100) = 0;
  USER(6, 1) = 0;
}

/// vStream: the name of a file in one register, flags that reading clears.
static void vstream(void) {
  const char* name = "any.wav";
  do {
    USER(2, 3) = (uint8_t)*name;
  } while (*name++ != '\0');
  USER(2, 4) = 1;
  USER(2, 5) = 16000;
  USER(2, 6) = 16;
  expect((USER(2, 1) & 0x18) == 0x18, "the name is good");
  USER(2, 0) = 1;
  expect((USER(2, 1) & 1) == 1, "active");
  stream(2, in, BLOCK, 1, 0);
  VSI(2, 0x104) = 100;
  VSI(2, 0x100) = 1 | 4 | 8;
  while ((VSI(2, 0x0c) & 1) == 0) {
  }
  const uint32_t status = USER(2, 1);
  expect((status & 7) == 6, "a block, the end, no longer active");
  expect((USER(2, 1) & 2) == 0, "reading takes the block's flag away");
  report("first", in[0] | (uint32_t)in[1] << 8);
  VSI(3, 0x04) = 1;
  expect(VSI(3, 0x0c) == 1, "interrupts by hand");
}

int main(void) {
  DEMCR |= 1u << 24;
  DWT_CTRL |= 1;
  use_own_vectors();
  sound();
  print("sound\n");
  sound_streams();
  print("streams\n");
  video();
  print("video\n");
  vstream();
  return 0;
}
