// SPDX-License-Identifier: Apache-2.0
// What the runner is told about one program. `carina firmware` writes a source file that defines `kApp`;
// every size, kernel and address in it comes from the program.
#pragma once

#include "carina/runtime.hpp"
#include "firmware/platform.hpp"

namespace carina::firmware {

/// Registers of a timing adapter, in their order. All 0: no limits.
struct TimingAdapter {
  uint32_t maxReads = 0, maxWrites = 0, maxBoth = 0;
  uint32_t readLatency = 0, writeLatency = 0;
  uint32_t pulseOn = 0, pulseOff = 0,
           bandwidth = 0;  // `bandwidth` 64-bit words per pulseOn + pulseOff cycles
};

/// How the NPU is set up; only programs with delegates have one.
struct NpuSetup {
  rt::DriverOptions driver;
  rt::MutableBytes fastScratch;
  TimingAdapter timing[2];
  bool poll;  // instead of sleeping until the interrupt
};

/// CPU cycles that an operator or the NPU took.
struct OperatorTime {
  rt::Text name;
  uint64_t cycles;
  uint32_t calls;
};

class Npu;

struct App {
  const Platform& platform;
  const char* name;    // the program's file name
  const char* target;  // "ethos-u55-128"; "cpu" without delegates

  uint32_t method;                           // index of the program's method that is run
  rt::Bytes program;                         // linked in; empty when it comes by semihosting
  rt::MutableBytes programMemory;            // where it is read to then
  rt::KernelTable kernels;                   // those that the program calls
  const NpuSetup* npu;                       // null without delegates
  rt::Status (*openNpu)(const App&, Npu**);  // null without delegates: nothing of the NPU is linked

  rt::Memory memory;             // of the method, exactly what it needs
  rt::MutableBytes io;           // for inputs and outputs without planned memory
  rt::Span<OperatorTime> times;  // one per operator and one for the NPU

  uint32_t samples;                    // inferences with the linked arrays
  rt::Span<const rt::Bytes> inputs;    // per input, all samples one after another; empty: every element is 1
  rt::Span<const rt::Bytes> expected;  // per output, likewise; empty: nothing to compare with
  float tolerance;                     // absolute, for float outputs; 0: bytes must be equal
  uint32_t printed;                    // elements of each output that are printed

  int (*run)(const App&);  // runLinked or runSemihosted
};

/// Defined by the generated source.
extern const App kApp;

/// Inputs and expected outputs are linked in. Returns the exit code.
int runLinked(const App& app);
/// Files named on the semihosting command line:
///   NAME [-m PROGRAM] [-i INPUT]... [-o OUTPUT]
/// Inputs are raw bytes in program order; outputs go to OUTPUT-0.bin, OUTPUT-1.bin, ... Never returns.
int runSemihosted(const App& app);

/// Programs the timing adapters, opens driver and delegate.
rt::Status openNpu(const App& app, Npu** npu);

}  // namespace carina::firmware
