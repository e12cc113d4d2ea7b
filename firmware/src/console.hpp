// SPDX-License-Identifier: Apache-2.0
// Text to the UART: no format strings, no buffers.
#pragma once

#include "carina/runtime.hpp"
#include "firmware/platform.hpp"

namespace carina::firmware {

/// Sets UART 0 up: 115200 baud at the platform's clock. Before the first print().
void openConsole(const Platform& platform);

/// The next byte that UART 0 receives; sleeps until it is there.
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

/// A line of the given parts. info() and error() begin with the level that log readers look for.
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

/// Ends the run as simulators of the platform understand it: the exit code in words, then the end of
/// transmission.
[[noreturn]] void finish(const Platform& platform, int code);

}  // namespace carina::firmware
