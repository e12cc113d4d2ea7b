// SPDX-License-Identifier: Apache-2.0
// Compares parts for an Ethos-N with the TOSA interpreter. An Ethos-N has 16-bit multipliers, TOSA 31-bit
// ones, and its sigmoid comes from tables: every operation in isolation, on the interpreter's inputs, must be
// within a code or two of the interpreter's result.
#pragma once

#include <map>
#include <unordered_map>

#include "base/work_budget.hpp"
#include "device/run.hpp"
#include "pipeline/verify.hpp"

namespace carina::pipeline {

class EthosNVerifier {
 public:
  /// `build` is for an Ethos-N; it and `budget`, which all runs draw on, must outlive the verifier.
  EthosNVerifier(const Build& build, WorkBudget& budget)
      : build_(build), budget_(budget), parts_(build.ethosNParts.size()) {}

  /// A run of part `index`: adds its operations to `result.layers` and its results to `result.offTosa`.
  Status add(size_t index, const device::EthosNDelegateRun& run, Verification& result);

 private:
  struct Part {
    bool open = false;
    std::unordered_map<int32_t, const ir::Value*> values;  // by tensor: the last value that it holds
    std::vector<ethosn::CompiledNetwork> alone;            // each operation as a separate network
    std::vector<size_t> layers;                            // of each operation, index in the result
  };
  Status open(size_t index, Verification& result);

  const Build& build_;
  WorkBudget& budget_;
  std::vector<Part> parts_;
};

}  // namespace carina::pipeline
