// SPDX-License-Identifier: Apache-2.0
#include "pipeline/bundle_cases.hpp"

#include <algorithm>
#include <cmath>

namespace carina::pipeline {
namespace {

Result<std::vector<Tensor>> tensorsOf(const std::vector<pte::BundleValue>& values, std::string_view what) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto* tensor = std::get_if<pte::BundleTensor>(&values[i]);
    if (tensor == nullptr)
      return fail("{} {} is no tensor", what, i)
          .withRemedy("programs with scalar inputs or outputs are not supported here");
    CARINA_TRY(Tensor converted, pte::toTensor(*tensor));
    tensors.push_back(std::move(converted));
  }
  return tensors;
}

bool close(double got, double wanted, const Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(wanted)) return std::isnan(got) && std::isnan(wanted);
  if (std::isinf(got) || std::isinf(wanted)) return got == wanted;
  return std::abs(got - wanted) <= tolerance.absolute + std::abs(tolerance.relative * wanted);
}

/// Adds what output `index` says to `result`.
void compare(const Tensor& got, const Tensor& wanted, size_t index, const Tolerance& tolerance,
             CaseResult& result) {
  const auto mismatch = [&](std::string text) {
    if (result.passed) result.mismatch = fmt::format("output {}: {}", index, text);
    result.passed = false;
  };
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape()) {
    mismatch(fmt::format("{}{} instead of {}{}", dtypeName(got.dtype()), shapeText(got.shape()),
                         dtypeName(wanted.dtype()), shapeText(wanted.shape())));
    return;
  }
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < got.numElements(); ++i) {
    const double a = got.realAt(i), b = wanted.realAt(i);
    if (std::isfinite(a) && std::isfinite(b)) result.maxError = std::max(result.maxError, std::abs(a - b));
    const bool same = isFloat(got.dtype()) ? close(a, b, tolerance) : got.integerAt(i) == wanted.integerAt(i);
    if (same) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong > 0) {
    mismatch(fmt::format("{} of {} elements differ, the first at {}: {} instead of {}", wrong,
                         got.numElements(), first, got.realAt(first), wanted.realAt(first)));
  }
}

Result<CaseResult> runCase(device::Runner& runner, const pte::BundleCase& entry, const Tolerance& tolerance,
                           device::RunStats& stats) {
  CARINA_TRY(const std::vector<Tensor> inputs, tensorsOf(entry.inputs, "input"));
  CARINA_TRY(const std::vector<Tensor> expected, tensorsOf(entry.expected, "expected output"));
  if (expected.empty()) return fail("the test case has no expected outputs");
  CARINA_TRY(device::RunOutcome outcome, runner.run(inputs));
  if (outcome.outputs.size() != expected.size())
    return fail("{} outputs, {} are expected", outcome.outputs.size(), expected.size());
  CaseResult result;
  result.passed = true;
  for (size_t i = 0; i < expected.size(); ++i) compare(outcome.outputs[i], expected[i], i, tolerance, result);
  stats = std::move(outcome.stats);
  return result;
}

}  // namespace

Result<BundleRun> runCases(const pte::Bundle& bundle, const device::RunOptions& options,
                           const Tolerance& tolerance,
                           const std::function<void(size_t done, size_t total)>& progress) {
  size_t total = 0;
  for (const pte::BundleSuite& suite : bundle.suites) total += suite.cases.size();
  if (total == 0) return fail("the bundle has no test case").withRemedy("give inputs with --input");
  BundleRun run;
  for (const pte::BundleSuite& suite : bundle.suites) {
    if (suite.cases.empty()) continue;
    device::RunOptions own = options;
    own.method = suite.method;
    auto runner = device::Runner::open(bundle.program, own);
    if (!runner) return std::move(runner).error().at(fmt::format("method {}", suite.method));
    for (size_t i = 0; i < suite.cases.size(); ++i) {
      auto result = runCase(*runner, suite.cases[i], tolerance, run.stats);
      if (!result)
        return std::move(result).error().at(fmt::format("method {}, test case {}", suite.method, i));
      result->method = suite.method;
      result->index = i;
      run.cases.push_back(std::move(*result));
      if (progress) progress(run.cases.size(), total);
    }
  }
  return run;
}

}  // namespace carina::pipeline
