// SPDX-License-Identifier: Apache-2.0
// carina: one program from an exported network to a program on the NPU.
#include "base/signals.hpp"
#include "console.hpp"
#include "program.hpp"

int main(int argc, char** argv) {
  carina::app::reserveStandardStreams();
  carina::installSignalHandlers();
  return carina::app::closeStandardOutput(carina::app::program(argc, argv));
}
