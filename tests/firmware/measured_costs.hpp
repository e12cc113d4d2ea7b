// SPDX-License-Identifier: Apache-2.0
// Cycles that a program takes on the virtual platform, of each kernel and of the code between kernels, on any
// core. kernel_cycles prints them for scripts/fit_cpu_costs.py, cost_test.cpp compares estimates with them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/npy.hpp"
#include "cpu/cost.hpp"
#include "pte/program.hpp"

namespace carina::firmware {

/// One execution.
struct MeasuredRun {
  std::map<std::string, int64_t> kernels;  // by name without overload: "aten::add"
  int64_t runtime = 0;                     // whole inference
  int64_t npu = 0;                         // as its PMU counts
  /// Cycles spent neither in kernels nor on the NPU.
  int64_t calls() const;
};

/// Builds images of a program (.pte) with inputs linked in, and runs them once for each of `variants` (inputs
/// of the same types) with the timing of each of the cores, all on the board that has the program's NPU.
/// Indexed by variant, then by core.
Result<std::vector<std::vector<MeasuredRun>>> measureAll(const std::filesystem::path& program,
                                                         std::span<const NamedTensors> variants,
                                                         std::span<const cpu::Core> cores);
/// The same for one variant.
Result<std::vector<MeasuredRun>> measure(const std::filesystem::path& program, const NamedTensors& inputs,
                                         std::span<const cpu::Core> cores);

/// Data of one kind for the inputs of a method: "random" (normally distributed), "smooth" (neighbours are
/// alike), "rectified" (half of the values are 0). `domains` (of the first inputs) keep floats in a range: ""
/// (any), "positive", "unit" (-0.9 to 0.9), "above-one". Integers are 0 or 1, int8 and int16 are arbitrary.
NamedTensors inputsOf(const pte::Method& method, const std::string& kind,
                      std::span<const std::string> domains = {});

}  // namespace carina::firmware
