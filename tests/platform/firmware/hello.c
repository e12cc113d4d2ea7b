// SPDX-License-Identifier: Apache-2.0
// The console, and an exit code that is printed.
#include "board.h"

int main(void) {
  print("Hello from the firmware\n");
  return 3;
}
