// SPDX-License-Identifier: Apache-2.0
#include "console.hpp"

#include "cortex_m.hpp"

namespace carina::firmware {
namespace {

// CMSDK APB UART.
constexpr uintptr_t kData = 0x00, kState = 0x04, kControl = 0x08, kInterrupts = 0x0c, kDivider = 0x10;
constexpr uint32_t kTransmitFull = 1, kReceiveFull = 2;
constexpr uint32_t kEnable = 3;             // transmit, receive
constexpr uint32_t kReceiveInterrupts = 8;  // in kControl
constexpr uint32_t kReceived = 2;           // in kInterrupts
constexpr uint32_t kBaud = 115200;
constexpr char kEndOfTransmission = 4;

uintptr_t uart = 0;

void send(char character) {
  while ((mmio(uart + kState) & kTransmitFull) != 0) {
  }
  mmio(uart + kData) = static_cast<uint8_t>(character);
}

void digits(uint64_t number, uint32_t least) {
  char text[20];
  uint32_t count = 0;
  while (number != 0 || count < least) {
    text[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  while (count > 0) put(text[--count]);
}

}  // namespace

void openConsole(const Platform& platform) {
  uart = platform.uart;
  mmio(uart + kDivider) = platform.coreHz / kBaud;
  mmio(uart + kControl) = kEnable;
}

/// The interrupt only ends the sleep: it is enabled while interrupts are masked, and never taken.
char receive() {
  constexpr uintptr_t word = kUartReceiveInterrupt / 32 * 4;
  constexpr uint32_t bit = 1u << kUartReceiveInterrupt % 32;
  mmio(uart + kControl) = kEnable | kReceiveInterrupts;
  while ((mmio(uart + kState) & kReceiveFull) == 0) {
    disableInterrupts();
    mmio(scs::kNvicEnable + word) = bit;
    if ((mmio(uart + kState) & kReceiveFull) == 0) waitForInterrupt();
    mmio(scs::kNvicDisable + word) = bit;
    mmio(uart + kInterrupts) = kReceived;
    mmio(scs::kNvicClearPending + word) = bit;
    enableInterrupts();
  }
  return static_cast<char>(mmio(uart + kData));
}

void put(char character) {
  if (character == '\n') send('\r');
  send(character);
}

void put(const char* text) {
  for (; *text != 0; ++text) put(*text);
}

void put(rt::Text text) {
  for (char character : text) put(character);
}

void put(uint64_t number) {
  digits(number, 1);
}

void put(int64_t number) {
  if (number < 0) put('-');
  put(number < 0 ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number));
}

void put(Hex number) {
  put("0x");
  for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[(number.value >> shift) & 0xfu]);
}

void put(Hundredths number) {
  put(number.value / 100);
  put('.');
  digits(number.value % 100, 2);
}

void put(float number) {
  uint32_t bits;
  __builtin_memcpy(&bits, &number, sizeof(bits));
  if ((bits >> 31) != 0) put('-');
  if ((bits & 0x7fffffffu) > 0x7f800000u) return put("nan");
  if ((bits & 0x7fffffffu) == 0x7f800000u) return put("inf");
  float rest = __builtin_fabsf(number);
  uint32_t exponent = 0;
  if (rest >= 1e9f) {
    while (rest >= 10.0f) {
      rest /= 10.0f;
      ++exponent;
    }
  }
  uint32_t whole = static_cast<uint32_t>(rest);
  uint32_t millionths = static_cast<uint32_t>((rest - static_cast<float>(whole)) * 1e6f + 0.5f);
  if (millionths >= 1000000) {
    ++whole;
    millionths = 0;
  }
  put(whole);
  put('.');
  digits(millionths, 6);
  if (exponent == 0) return;
  put("e+");
  put(exponent);
}

void error(const rt::Status& status) {
  char text[192];
  rt::statusText(status, text, sizeof(text));
  error(text);
}

void finish(const Platform& platform, int code) {
  print("Application exit code: ", static_cast<int32_t>(code), ".");
  put(kEndOfTransmission);
  put('\n');
  if (platform.exitTag) print("EXITTHESIM");
  for (;;) waitForInterrupt();
}

}  // namespace carina::firmware
