// SPDX-License-Identifier: Apache-2.0
// Text to the UART: no format strings, no buffers.
#pragma once

#include "carina/runtime.hpp"
#include "firmware/platform.hpp"

namespace carina::firmware {

/// Configures UART 0: 115200 baud at the platform's clock. Must precede the first print().
void openConsole(const Platform& platform);

/// Returns the next byte that UART 0 receives; sleeps until it arrives.
char receive();

struct Hex {
  uint32_t value;
};
/// `value` with two decimals.
struct Hundredths {
  uint64_t value;
};

void put(char character);
void put(const char* text);
void put(rt::Text text);
void put(uint64_t number);
void put(int64_t number);
void put(Hex number);  // 0x and eight digits
void put(Hundredths number);
void put(float number);  // six decimals; with an exponent from 1e9 on
inline void put(uint32_t number) {
  put(uint64_t{number});
}
inline void put(int32_t number) {
  put(int64_t{number});
}
#if __SIZE_WIDTH__ == 32
inline void put(size_t number) {
  put(uint64_t{number});
}
#endif

/// Prints a line of the given parts. info() and error() start with the level that log readers look for.
template <typename... Parts>
void print(const Parts&... parts) {
  (put(parts), ...);
  put('\n');
}
template <typename... Parts>
void info(const Parts&... parts) {
  put("I [carina] ");
  print(parts...);
}
template <typename... Parts>
void error(const Parts&... parts) {
  put("E [carina] ");
  print(parts...);
}
void error(const rt::Status& status);

/// Ends the run in the way that simulators of the platform recognize: the exit code as text, then end of
/// transmission.
[[noreturn]] void finish(const Platform& platform, int code);

}  // namespace carina::firmware
