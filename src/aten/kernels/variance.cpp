// SPDX-License-Identifier: Apache-2.0
// Variance and standard deviation, alone and with the mean.
#include <cmath>

#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/fold.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

/// The sum of squares is divided by N - correction; unbiased=True means a correction of 1.
double correctionOf(const Arguments& a) {
  if (a.has("unbiased")) return a.boolean("unbiased", true) ? 1 : 0;
  return a.real("correction", 1);
}

Result<Kernel> prepareVariance(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  const double correction = correctionOf(Arguments(node));
  const bool root = node.opName().starts_with("aten.std");
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate(0).mutableAs<T>().data();
      T* means = call.numResults() > 1 ? call.allocate(1).mutableAs<T>().data() : nullptr;
      const auto n = static_cast<double>(fold.count());
      for (int64_t at = 0; at < fold.outputs(); ++at) {
        double sum = 0, squares = 0;
        fold.visit(at, [&](int64_t i) { sum += static_cast<double>(in[i]); });
        const double mean = sum / n;
        fold.visit(at, [&](int64_t i) {
          squares += (static_cast<double>(in[i]) - mean) * (static_cast<double>(in[i]) - mean);
        });
        const double variance = squares / std::max(0.0, n - correction);
        out[at] = static_cast<T>(root ? std::sqrt(variance) : variance);
        if (means) means[at] = static_cast<T>(mean);
      }
      return {};
    });
  });
}

constexpr KernelEntry kVarianceKernels[] = {
    {"aten.var.default", prepareVariance},
    {"aten.var.dim", prepareVariance},
    {"aten.var.correction", prepareVariance},
    {"aten.std.default", prepareVariance},
    {"aten.std.dim", prepareVariance},
    {"aten.std.correction", prepareVariance},
    {"aten.var_mean.default", prepareVariance},
    {"aten.var_mean.dim", prepareVariance},
    {"aten.var_mean.correction", prepareVariance},
    {"aten.std_mean.default", prepareVariance},
    {"aten.std_mean.dim", prepareVariance},
    {"aten.std_mean.correction", prepareVariance},
};

}  // namespace

std::span<const KernelEntry> varianceKernels() {
  return kVarianceKernels;
}

}  // namespace carina::aten
