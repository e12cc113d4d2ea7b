// SPDX-License-Identifier: Apache-2.0
// What a whole inference takes: the NPU, the CPU's kernels, and what the runtime does between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "cpu/cost.hpp"
#include "npu/targets/target.hpp"
#include "pte/program.hpp"

namespace carina::pipeline {

/// Calls of one kernel on operands of some types.
struct KernelTime {
  std::string kernel, types;
  size_t calls = 0;
  double cycles = 0;
  double error = 0;      // relative
  bool measured = true;  // false: a guess
};

struct InferenceTime {
  cpu::Core core = cpu::Core::M55;
  double clockHz = 0;  // of CPU and NPU; 0: not known, there is no NPU
  int64_t npuCycles = 0, cpuCycles = 0, callCycles = 0;
  double error = 0;                 // relative, of the sum
  std::vector<KernelTime> kernels;  // the dearest first
  bool branches = false;            // the program has branches or loops: each instruction is counted once
  /// What it would take with integer inputs and outputs where it converts floats, and with kernels for
  /// Helium; nothing where that changes little (below kWorthSaying of it).
  std::optional<int64_t> integerIoCycles, heliumCycles;
  std::string integerIo;  // their type: "int8"
  /// What the CPU takes to make of a picture what the NPU takes (types, layout, mean and deviation), where
  /// that is worth a word, and which input it is: the program could take pixels.
  int64_t pictureCycles = 0;
  size_t pictureInput = 0;

  static constexpr double kWorthSaying = 0.05;
  int64_t cycles() const { return npuCycles + cpuCycles + callCycles; }
  /// Of so many cycles; 0 without a clock.
  double milliseconds(int64_t cycles) const {
    return clockHz > 0 ? 1e3 * static_cast<double>(cycles) / clockHz : 0;
  }
  double milliseconds() const { return milliseconds(cycles()); }
};

/// One stretch of an inference. CPU and NPU take turns: each begins where the one in front ends.
struct InferenceStep {
  enum class Kind : uint8_t { Call, Kernel, Npu };
  Kind kind = Kind::Call;
  std::string name;               // "aten::add.out", "call of NPU part 0", "NPU part 0"
  std::string what;               // types and shapes of a kernel, bytes that a call copies
  int64_t start = 0, cycles = 0;  // of all turns
  int64_t turns = 1;              // of a loop that says how often it runs
  size_t part = 0;                // of the NPU and of calls of it: delegate of the method
};

/// What becomes of one execution, in the order of the program; turns of a loop stand where the first is.
/// `partCycles`: of each delegate. The cycles of each kind add up to those of inferenceTime().
std::vector<InferenceStep> inferenceSteps(const pte::Method& method, std::span<const int64_t> partCycles,
                                          cpu::Core core);
/// The cycles of the NPU in one execution, from those of each delegate.
int64_t npuCyclesOf(const pte::Method& method, std::span<const int64_t> partCycles);

/// The core of the board that carries the NPU (none: Corstone-300's), with what `carina firmware` compiles
/// unless it is told otherwise: no Helium.
cpu::Core usualCore(const npu::Machine* machine);
/// The core of this name; empty: the usual one. Error lists the known names, its place is --cpu.
Result<cpu::Core> coreOf(const std::string& name, const npu::Machine* machine);

/// Of a method that the verifier has seen. `npuCycles`: of all its NPU calls. CPU and NPU take turns.
InferenceTime inferenceTime(const pte::Method& method, int64_t npuCycles, const npu::Machine* machine,
                            cpu::Core core);

struct Build;

/// Of what was compiled, on the core that `core` names (empty: the usual one); nothing without a program,
/// and where an Ethos-N runs parts of it, whose time is not known.
std::optional<InferenceTime> inferenceOf(const Build& build, const std::string& core);
/// Of a finished program (.pte, untrusted) whose NPU calls take `npuCycles`; `method` empty: the first.
/// `machine`: as it was compiled for, or none. Nothing for other files, another method, or with an Ethos-N.
Result<std::optional<InferenceTime>> inferenceOf(ByteSpan program, const std::string& method,
                                                 int64_t npuCycles, const npu::Machine* machine,
                                                 const std::string& core);

}  // namespace carina::pipeline
