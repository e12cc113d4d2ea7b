// SPDX-License-Identifier: Apache-2.0
#include "quantize/sample_doubts.hpp"

#include <algorithm>
#include <cmath>

#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// What the values of an input are like.
struct Values {
  Range range;
  int64_t count = 0;
  bool whole = true;

  void add(const Tensor& tensor) {
    const auto values = tensor.as<float>();
    range = unite(range, rangeOf(values));
    count += tensor.numElements();
    whole = whole && std::all_of(values.begin(), values.end(), [](float x) { return std::trunc(x) == x; });
  }
  bool constant() const { return range.min == range.max; }
  float largest() const { return std::max(std::abs(range.min), std::abs(range.max)); }
};

/// Bytes of an image, as far as numbers tell: of values of another kind, hardly any sample has only whole
/// ones.
bool looksLikeBytes(const Values& values) {
  constexpr float kMostOfOthers = 32;
  return values.whole && values.range.min >= 0 && values.range.max >= kMostOfOthers &&
         values.range.max <= 255;
}

}  // namespace

std::vector<Diagnostic> doubtsAbout(const ir::Graph& graph, std::span<const Sample> samples,
                                    std::span<const Tensor> examples) {
  constexpr float kFarther = 8;  // than the example reaches
  std::vector<Diagnostic> doubts;
  const size_t inputs = samples.empty() ? 0 : samples.front().size();  // state has no samples
  for (size_t i = 0; i < std::min(inputs, graph.inputs().size()); ++i) {
    const ir::Value& input = *graph.inputs()[i];
    if (input.dtype() != DType::Float32 || input.unused()) continue;
    Values values;
    for (const Sample& sample : samples) values.add(sample[i]);
    if (values.count < 2) continue;
    const std::string place = fmt::format("input {} ('{}')", i, input.name);
    if (values.constant()) {
      doubts.push_back(
          {fmt::format("the calibration data is {} everywhere: it shows no range", values.range.min),
           "give samples of what the network will see", "", place});
      continue;
    }
    if (i >= examples.size() || examples[i].shape() != input.shape() ||
        examples[i].dtype() != DType::Float32 || examples[i].numElements() == 0)
      continue;
    Values example;
    example.add(examples[i]);
    if (!looksLikeBytes(values) || example.constant() || example.largest() * kFarther > values.largest())
      continue;
    doubts.push_back(
        {fmt::format("the calibration data holds whole numbers from {} to {}, the input that the network was "
                     "exported with lies between {:.3g} and {:.3g}",
                     values.range.min, values.range.max, example.range.min, example.range.max),
         "if images are preprocessed before the network sees them ((x / 255 - mean) / deviation), preprocess "
         "the samples, too",
         "", place});
  }
  return doubts;
}

}  // namespace carina::quantize
