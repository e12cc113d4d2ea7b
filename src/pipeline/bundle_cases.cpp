// SPDX-License-Identifier: Apache-2.0
#include "pipeline/bundle_cases.hpp"

#include <algorithm>
#include <cmath>

namespace carina::pipeline {
namespace {

/// The inputs that are tensors. Numbers were fixed at export and cannot be changed.
Result<std::vector<Tensor>> inputsOf(const pte::BundleCase& entry, const pte::Method& method) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    if (const auto* tensor = std::get_if<pte::BundleTensor>(&entry.inputs[i])) {
      CARINA_TRY(Tensor converted, pte::toTensor(*tensor));
      tensors.push_back(std::move(converted));
      continue;
    }
    if (i >= method.inputs.size())
      return fail(Code::InputMismatch, "input {} is given, but the program has {} inputs", i,
                  method.inputs.size());
    const pte::Value& exported = method.values.at(static_cast<size_t>(method.inputs[i]));
    const auto fits = [&](const auto& number) {
      using Number = std::decay_t<decltype(number)>;
      if constexpr (std::is_same_v<Number, pte::BundleTensor>) {
        return false;
      } else {
        const auto* own = std::get_if<Number>(&exported);
        return own != nullptr && *own == number;
      }
    };
    if (!std::visit(fits, entry.inputs[i]))
      return fail(Code::InputMismatch, "input {} differs from the number that the program was exported with",
                  i);
  }
  return tensors;
}

Result<Tensor> toTensor(const pte::BundleValue& value) {
  if (const auto* tensor = std::get_if<pte::BundleTensor>(&value)) return pte::toTensor(*tensor);
  if (const auto* integer = std::get_if<int64_t>(&value)) return Tensor::scalar(*integer);
  if (const auto* real = std::get_if<double>(&value)) return Tensor::scalar(*real);
  if (const auto* truth = std::get_if<bool>(&value)) {
    Tensor tensor = Tensor::zeros(DType::Bool, {});
    tensor.setIntegerAt(0, *truth ? 1 : 0);
    return tensor;
  }
  return fail(Code::InputMismatch, "an expected output is neither a tensor nor a number");
}

bool close(double got, double wanted, const Tolerance& tolerance) {
  if (std::isnan(got) || std::isnan(wanted)) return std::isnan(got) && std::isnan(wanted);
  if (std::isinf(got) || std::isinf(wanted)) return got == wanted;
  return std::abs(got - wanted) <= tolerance.absolute + std::abs(tolerance.relative * wanted);
}

/// Records the comparison of output `index` in `result`.
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

Result<CaseResult> runCase(device::Runner& runner, const pte::Method& method, const pte::BundleCase& entry,
                           const Tolerance& tolerance, device::RunStats& stats) {
  CARINA_TRY(const std::vector<Tensor> inputs, inputsOf(entry, method));
  std::vector<Tensor> expected;
  for (const pte::BundleValue& value : entry.expected) {
    CARINA_TRY(Tensor tensor, toTensor(value));
    expected.push_back(std::move(tensor));
  }
  if (expected.empty()) return fail(Code::UnsupportedProgram, "the test case has no expected outputs");
  CARINA_TRY(device::RunOutcome outcome, runner.run(inputs));
  if (outcome.outputs.size() != expected.size())
    return fail(Code::InputMismatch, "got {} outputs, expected {}", outcome.outputs.size(), expected.size());
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
  const auto wanted = [&](const pte::BundleSuite& suite) {
    return options.method.empty() || suite.method == options.method;
  };
  size_t total = 0;
  for (const pte::BundleSuite& suite : bundle.suites) total += wanted(suite) ? suite.cases.size() : 0;
  if (total == 0) {
    return fail(Code::UnsupportedProgram, "the bundle has no test case{}",
                options.method.empty() ? "" : " of method " + options.method)
        .withRemedy("give inputs with --input");
  }
  CARINA_TRY(const pte::Program program, pte::readProgram(bundle.program));
  BundleRun run;
  for (const pte::BundleSuite& suite : bundle.suites) {
    if (suite.cases.empty() || !wanted(suite)) continue;
    device::RunOptions own = options;
    own.method = suite.method;
    auto runner = device::Runner::open(bundle.program, own);
    if (!runner) return std::move(runner).error().at(fmt::format("method {}", suite.method));
    const pte::Method& method = *program.findMethod(suite.method);  // exists: open() succeeded
    for (size_t i = 0; i < suite.cases.size(); ++i) {
      auto result = runCase(*runner, method, suite.cases[i], tolerance, run.stats);
      if (!result)
        return std::move(result).error().at(fmt::format("method {}, test case {}", suite.method, i));
      if (options.keepEvents)
        run.profile.push_back({"Execute", static_cast<int32_t>(i), std::move(run.stats.events)});
      result->method = suite.method;
      result->index = i;
      run.cases.push_back(std::move(*result));
      if (progress) progress(run.cases.size(), total);
    }
  }
  return run;
}

}  // namespace carina::pipeline
