// SPDX-License-Identifier: Apache-2.0
// What a whole inference takes: the NPU, the CPU's kernels, and what the runtime does between them.
#pragma once

#include <cstdint>
#include <optional>
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

  static constexpr double kWorthSaying = 0.05;
  int64_t cycles() const { return npuCycles + cpuCycles + callCycles; }
  /// Of so many cycles; 0 without a clock.
  double milliseconds(int64_t cycles) const {
    return clockHz > 0 ? 1e3 * static_cast<double>(cycles) / clockHz : 0;
  }
  double milliseconds() const { return milliseconds(cycles()); }
};

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
