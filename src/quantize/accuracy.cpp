// SPDX-License-Identifier: Apache-2.0
#include "quantize/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "aten/executor.hpp"

namespace carina::quantize {

Result<std::optional<Accuracy>> estimateAccuracy(const Quantized& quantized, std::span<const Sample> samples,
                                                 size_t most) {
  if (!quantized.reference || samples.empty() || most == 0) return std::optional<Accuracy>();
  CARINA_TRY(const aten::Executor real, aten::Executor::create(*quantized.reference));
  CARINA_TRY(const aten::Executor rounded, aten::Executor::create(quantized.graph));
  const size_t count = std::min(most, samples.size());
  std::vector<Sqnr> outputs(quantized.graph.outputs().size());
  for (size_t i = 0; i < count; ++i) {
    const Sample& sample = samples[i * samples.size() / count];
    CARINA_TRY(const auto expected, real.run(sample));
    CARINA_TRY(const auto found, rounded.run(sample));
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (isFloat(expected[k].dtype()) && isFloat(found[k].dtype())) outputs[k].add(expected[k], found[k]);
    }
  }
  Accuracy accuracy;
  accuracy.samples = count;
  accuracy.decibels = std::numeric_limits<double>::infinity();
  for (const Sqnr& output : outputs) {
    const double decibels = output.decibels();
    if (std::isnan(decibels)) continue;
    accuracy.decibels = std::min(accuracy.decibels, decibels);
    ++accuracy.outputs;
  }
  if (accuracy.outputs == 0) return std::optional<Accuracy>();
  return std::optional<Accuracy>(accuracy);
}

}  // namespace carina::quantize
