// SPDX-License-Identifier: Apache-2.0
// The test cases of a bundled program: every case runs, and its outputs are compared with the expected ones.
#pragma once

#include <functional>
#include <vector>

#include "base/result.hpp"
#include "device/run.hpp"
#include "pipeline/run.hpp"
#include "pte/bundle.hpp"

namespace carina::pipeline {

/// For floating-point outputs: |got - expected| <= absolute + |relative * expected|. Integers are compared
/// exactly.
struct Tolerance {
  double absolute = 0.01, relative = 0.01;
};

struct BundleRun {
  std::vector<CaseResult> cases;          // suites in file order, cases in suite order
  device::RunStats stats;                 // of the last case
  std::vector<pte::ProfiledRun> profile;  // with RunOptions::keepEvents
};

/// Fails if a case cannot be run (inputs that do not fit, an NPU fault), not if outputs differ. A bundle
/// without cases, or a case without expected outputs, proves nothing and is an error.
Result<BundleRun> runCases(const pte::Bundle& bundle, const device::RunOptions& options,
                           const Tolerance& tolerance,
                           const std::function<void(size_t done, size_t total)>& progress = nullptr);

}  // namespace carina::pipeline
