// SPDX-License-Identifier: Apache-2.0
// Description of one program for the runner. `carina firmware` writes a source file that defines `kApp`;
// every size, kernel and address in it is derived from the program.
#pragma once

#include "carina/runtime.hpp"
#include "carina/tokenizer.hpp"
#include "firmware/platform.hpp"

namespace carina::firmware {

/// Registers of a timing adapter, in register order. All 0: no limits.
struct TimingAdapter {
  uint32_t maxReads = 0, maxWrites = 0, maxBoth = 0;
  uint32_t readLatency = 0, writeLatency = 0;
  uint32_t pulseOn = 0, pulseOff = 0,
           bandwidth = 0;  // `bandwidth` 64-bit words per pulseOn + pulseOff cycles
};

/// Configuration of the NPU; only programs with delegates have one.
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

/// A method of the program and its memory, of exactly the sizes that it needs. State that methods keep
/// between calls is in the second pool of each, which is the same memory.
struct MethodSetup {
  uint32_t index;
  rt::Memory memory;
  rt::MutableBytes io;           // for inputs and outputs without planned memory
  rt::Span<OperatorTime> times;  // one per operator and one for the NPU
};

/// Configuration of text generation by a language model.
struct TextSetup {
  rt::Bytes tokenizer;              // format/tokenizer_table.hpp
  rt::Text prompt;                  // linked in; if empty, prompts are lines that the UART receives
  uint32_t context;                 // tokens that fit in the model's state
  uint32_t tokens;                  // maximum per text, without those of the prompt
  rt::Span<char> line;              // memory for a received line
  rt::Span<rt::TokenPiece> pieces;  // and for its tokens
};

struct App {
  const Platform& platform;
  const char* name;    // the program's file name
  const char* target;  // "ethos-u55-128"; "cpu" without delegates

  rt::Span<const MethodSetup> methods;       // the one to run; for language models decode, optionally prefill
  rt::Bytes program;                         // linked in; empty if it is read by semihosting
  rt::MutableBytes programMemory;            // where it is read to in that case
  rt::KernelTable kernels;                   // those that the program calls
  const NpuSetup* npu;                       // null without delegates
  rt::Status (*openNpu)(const App&, Npu**);  // null without delegates, so that no NPU code is linked

  uint32_t samples;                    // inferences with the linked arrays
  rt::Span<const rt::Bytes> inputs;    // per input, all samples concatenated; empty: every element is 1
  rt::Span<const rt::Bytes> expected;  // per output, likewise; empty: no comparison
  float tolerance;                     // absolute, for float outputs; 0: bytes must be equal
  uint32_t printed;                    // elements of each output that are printed

  const TextSetup* text;   // null unless text is generated
  int (*run)(const App&);  // runLinked, runSemihosted or runLanguage
};

/// Defined by the generated source.
extern const App kApp;

/// Inputs and expected outputs are linked in. Returns the exit code.
int runLinked(const App& app);
/// Files named on the semihosting command line:
///   NAME [-m PROGRAM] [-i INPUT]... [-o OUTPUT]
/// Inputs are raw bytes in program order; outputs go to OUTPUT-0.bin, OUTPUT-1.bin, ... Never returns.
int runSemihosted(const App& app);
/// Generates text: prints each prompt and the model's continuation, token by token, always the most likely
/// token. Without a linked prompt, ends at an empty line or an end of transmission. Returns the exit code,
/// which is also 1 if a prompt could not be processed.
int runLanguage(const App& app);

/// Programs the timing adapters, opens driver and delegate.
rt::Status openNpu(const App& app, Npu** npu);

}  // namespace carina::firmware
