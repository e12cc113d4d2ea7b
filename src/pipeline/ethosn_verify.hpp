// SPDX-License-Identifier: Apache-2.0
// Parts for an Ethos-N beside the TOSA interpreter. Multipliers of an Ethos-N have 16 bits, those of TOSA 31,
// and its sigmoid comes from tables: every operation by itself, given what the interpreter has, must come
// within a code or two of it.
#pragma once

#include <map>
#include <unordered_map>

#include "base/work_budget.hpp"
#include "device/run.hpp"
#include "pipeline/verify.hpp"

namespace carina::pipeline {

class EthosNVerifier {
 public:
  /// `build` is for an Ethos-N; it and `budget`, from which all runs take their steps, outlive the verifier.
  EthosNVerifier(const Build& build, WorkBudget& budget)
      : build_(build), budget_(budget), parts_(build.ethosNParts.size()) {}

  /// A run of part `index`: adds its operations to `result.layers`, and its results to
  /// `result.offTosa`.
  Status add(size_t index, const device::EthosNDelegateRun& run, Verification& result);

 private:
  struct Part {
    bool open = false;
    std::unordered_map<int32_t, const ir::Value*> values;  // by tensor: the last of those that it is
    std::vector<ethosn::CompiledNetwork> alone;            // each operation as a network of its own
    std::vector<size_t> layers;                            // of each operation, in the result
  };
  Status open(size_t index, Verification& result);

  const Build& build_;
  WorkBudget& budget_;
  std::vector<Part> parts_;
};

}  // namespace carina::pipeline
