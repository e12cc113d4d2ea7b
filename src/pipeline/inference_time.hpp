// SPDX-License-Identifier: Apache-2.0
// The time of a whole inference: the NPU, the CPU kernels, and the work of the runtime between them.
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

/// Calls of one kernel on operands of given types.
struct KernelTime {
  std::string kernel, types;
  size_t calls = 0;
  double cycles = 0;
  double error = 0;      // relative
  bool measured = true;  // false: a rough estimate
};

struct InferenceTime {
  cpu::Core core = cpu::Core::M55;
  double clockHz = 0;  // of CPU and NPU; 0: unknown, there is no NPU
  int64_t npuCycles = 0, cpuCycles = 0, callCycles = 0;
  double error = 0;                 // relative, of the total
  std::vector<KernelTime> kernels;  // most expensive first
  bool branches = false;            // the program branches or loops: each instruction is counted once
  /// Cycles with integer inputs and outputs instead of converted floats, and with Helium kernels; nullopt if
  /// the gain is small (below kMinReportedGain of the total).
  std::optional<int64_t> integerIoCycles, heliumCycles;
  std::string integerIo;  // their type: "int8"
  /// CPU cycles that convert an image to the NPU's input (types, layout, mean and deviation), if significant,
  /// and which input it is: the program could accept pixels.
  int64_t imagePreparationCycles = 0;
  size_t pictureInput = 0;

  static constexpr double kMinReportedGain = 0.05;
  int64_t cycles() const { return npuCycles + cpuCycles + callCycles; }
  /// Of the given number of cycles; 0 without a clock.
  double milliseconds(int64_t cycles) const {
    return clockHz > 0 ? 1e3 * static_cast<double>(cycles) / clockHz : 0;
  }
  double milliseconds() const { return milliseconds(cycles()); }
};

/// One interval of an inference. CPU and NPU alternate: each begins when the preceding one ends.
struct InferenceStep {
  enum class Kind : uint8_t { Call, Kernel, Npu };
  Kind kind = Kind::Call;
  std::string name;               // "aten::add.out", "call of NPU part 0", "NPU part 0"
  std::string what;               // types and shapes of a kernel, bytes that a call copies
  int64_t start = 0, cycles = 0;  // of all iterations
  int64_t turns = 1;              // in a loop with a known iteration count
  size_t part = 0;                // for the NPU and calls of it: delegate of the method
};

/// The steps of one execution, in program order; a loop's iterations are merged at the position of the first.
/// `partCycles`: of each delegate. The cycles of each kind add up to those of inferenceTime().
std::vector<InferenceStep> inferenceSteps(const pte::Method& method, std::span<const int64_t> partCycles,
                                          cpu::Core core);
/// The NPU cycles of one execution, from those of each delegate.
int64_t npuCyclesOf(const pte::Method& method, std::span<const int64_t> partCycles);

/// The core of the board that carries the NPU (none: Corstone-300's), with what `carina firmware` compiles
/// for by default: no Helium.
cpu::Core usualCore(const npu::Machine* machine);
/// The core of this name; empty: the default one. The error lists the known names and is reported at --cpu.
Result<cpu::Core> coreOf(const std::string& name, const npu::Machine* machine);

/// For a method that has passed the verifier. `npuCycles`: of all its NPU calls. CPU and NPU alternate.
InferenceTime inferenceTime(const pte::Method& method, int64_t npuCycles, const npu::Machine* machine,
                            cpu::Core core);

struct Build;

/// For a compiled network, on the core named `core` (empty: the default one); nullopt without a program, and
/// if an Ethos-N, whose timing is unknown, runs parts of it.
std::optional<InferenceTime> inferenceOf(const Build& build, const std::string& core);
/// For a finished program (.pte, untrusted) whose NPU calls take `npuCycles`; `method` empty: the first.
/// `machine`: the one it was compiled for, or null. nullopt for other files, other methods, or with an
/// Ethos-N.
Result<std::optional<InferenceTime>> inferenceOf(ByteSpan program, const std::string& method,
                                                 int64_t npuCycles, const npu::Machine* machine,
                                                 const std::string& core);

}  // namespace carina::pipeline
