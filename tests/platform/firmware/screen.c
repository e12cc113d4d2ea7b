// SPDX-License-Identifier: Apache-2.0
// Display, touch screen, pins, buttons and signals. media_test.cpp provides what happens from outside.
#include "own_vectors.h"

#define LCD(offset) REG(0x5930a000 + (offset))
#define I2C(offset) REG(0x59200000 + (offset))
#define GPIO(port, offset) REG(0x51100000 + 0x1000 * (port) + (offset))
#define FPGA(offset) REG(0x59302000 + (offset))
#define VIO(offset) REG(0x4fef0000 + (offset))
#define TOUCH_IRQ 51u
#define GPIO0_IRQ 69u
#define GPIO0_3_IRQ (73u + 3)
#define GPIO1_12_IRQ (73u + 16 + 12)

static volatile uint32_t touches, rises, levels, combined;

// --- display: a register or a pixel is two bytes, the upper one first

static void lcd_register(uint32_t reg, uint32_t value) {
  LCD(0x00) = reg;
  LCD(0x04) = value >> 8;
  LCD(0x04) = value & 0xff;
}

static void lcd_window(uint32_t x, uint32_t y, uint32_t w, uint32_t h) {
  const uint32_t sides[] = {x, x + w - 1, y, y + h - 1};
  for (uint32_t i = 0; i < 4; ++i) {
    lcd_register(2 + 2 * i, sides[i] >> 8);
    lcd_register(3 + 2 * i, sides[i] & 0xff);
  }
  LCD(0x00) = 0x22;
}

static void lcd_fill(uint32_t pixels, uint32_t colour) {
  for (uint32_t i = 0; i < pixels; ++i) {
    LCD(0x04) = colour >> 8;
    LCD(0x04) = colour & 0xff;
  }
}

static void show(void) {
  LCD(0x4c) = 0x08 | 0x40;  // out of reset, lit
  LCD(0x00) = 0;
  expect(LCD(0x08) == 0x47, "the display's identity");
  lcd_register(0x16, 0xa8);  // rows and columns exchanged: 320 x 240
  lcd_window(0, 0, 320, 240);
  lcd_fill(320 * 240, 0x001f);  // blue: a frame
  lcd_window(10, 20, 30, 40);
  lcd_fill(30 * 40, 0xf800);  // a red box
  expect(LCD(0x0c) == 1, "accesses are complete");
}

// --- touch screen: bit by bit over a two-wire bus

#define SCL 1u
#define SDA 2u

static void start(void) {
  I2C(0) = SCL | SDA;
  I2C(4) = SDA;
  I2C(4) = SCL;
}

static void stop(void) {
  I2C(4) = SDA;
  I2C(0) = SCL;
  I2C(0) = SDA;
}

static uint32_t bit(uint32_t high) {
  I2C(high != 0 ? 0 : 4) = SDA;
  I2C(0) = SCL;
  const uint32_t seen = I2C(0) & SDA;
  I2C(4) = SCL;
  return seen != 0;
}

/// Whether it was acknowledged.
static uint32_t send(uint32_t byte) {
  for (uint32_t mask = 0x80; mask != 0; mask >>= 1) bit(byte & mask);
  return !bit(1);
}

static uint32_t receive(uint32_t more) {
  uint32_t byte = 0;
  for (int i = 0; i < 8; ++i) byte = byte << 1 | bit(1);
  bit(!more);
  return byte;
}

static void touch_write(uint32_t reg, uint32_t value) {
  start();
  expect(send(0x82) && send(reg) && send(value), "the touch screen acknowledges");
  stop();
}

static uint32_t touch_read(uint32_t reg, uint32_t bytes) {
  uint32_t value = 0;
  start();
  expect(send(0x82) && send(reg), "the touch screen acknowledges");
  start();
  expect(send(0x83), "the touch screen acknowledges");
  for (uint32_t i = 1; i <= bytes; ++i) value = value << 8 | receive(i < bytes);
  stop();
  return value;
}

static void touch_irq(void) {
  ++touches;
  touch_write(0x0b, 0xff);
}

static void touch(void) {
  start();
  expect(!send(0x90), "nobody else is on the bus");
  stop();
  expect(touch_read(0x00, 2) == 0x0811, "the touch screen's identity");
  touch_write(0x0a, 3);  // touches and data interrupt
  touch_write(0x09, 1);
  touch_write(0x40, 1);
  expect((touch_read(0x40, 1) & 0x80) == 0 && touch_read(0x4c, 1) == 0, "no finger");
  on_interrupt(TOUCH_IRQ, touch_irq);
  while (touches == 0) wfi();
  expect((touch_read(0x40, 1) & 0x80) != 0 && touch_read(0x4c, 1) == 1, "a finger");
  const uint32_t xyz = touch_read(0xd7, 4);
  report("touch x", xyz >> 20);
  report("touch y", xyz >> 8 & 0xfff);
  while (touches == 1) wfi();
  expect((touch_read(0x40, 1) & 0x80) == 0, "the finger is gone");
}

// --- pins

static void pin_irq(void) {
  ++rises;
  GPIO(0, 0x38) = 1u << 3;
}

static void level_irq(void) {
  ++levels;
  GPIO(1, 0x24) = 1u << 12;
}

static void combined_irq(void) {
  ++combined;
}

static void pins(void) {
  // An output, read back, changed through the masked addresses as well.
  GPIO(0, 0x10) = 0x0ff0;
  GPIO(0, 0x04) = 0x0550;
  expect(GPIO(0, 0x00) == 0x0550, "outputs are read back");
  GPIO(0, 0x800 + 4 * 0x0f) = 0x0a00;
  GPIO(0, 0x400 + 4 * 0xf0) = 0x00a0;
  expect(GPIO(0, 0x04) == 0x0aa0, "masked stores change what the mask says");
  expect(GPIO(0, 0x400 + 4 * 0x20) == 0x20, "and masked loads see no more");
  expect(GPIO(0, 0x10) == 0x0ff0, "directions");
  // A rising edge of pin 3, and a high level of pin 12 of port 1.
  GPIO(0, 0x28) = 1u << 3;
  GPIO(0, 0x30) = 1u << 3;
  GPIO(0, 0x20) = 1u << 3;
  // The pin's interrupt goes first, and clears the cause of the port's.
  NVIC_PRIORITY(GPIO0_IRQ) = 0x40;
  on_interrupt(GPIO0_IRQ, combined_irq);
  on_interrupt(GPIO0_3_IRQ, pin_irq);
  while (rises == 0) wfi();
  expect((GPIO(0, 0x00) & 1u << 3) != 0, "the pin is high");
  expect(combined == 1, "the port's interrupt, too");
  GPIO(1, 0x30) = 1u << 12;
  GPIO(1, 0x20) = 1u << 12;
  on_interrupt(GPIO1_12_IRQ, level_irq);
  while (levels == 0) wfi();
  expect(rises == 1, "one edge is one interrupt");
  expect(FPGA(0x08) == 2 && FPGA(0x28) == 0x81, "a button and two switches");
  VIO(0x08) = 0xff;
  expect(VIO(0x0c) == 0x10, "a signal");
  VIO(0x10 + 4 * 5) = 77;
  expect(VIO(0x10 + 4 * 5) == 77, "values are kept");
}

int main(void) {
  use_own_vectors();
  show();
  touch();
  print("touched\n");
  pins();
  print("pins\n");
  return 0;
}
