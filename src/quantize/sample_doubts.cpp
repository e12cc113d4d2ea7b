// SPDX-License-Identifier: Apache-2.0
#include "quantize/sample_doubts.hpp"

#include <algorithm>
#include <cmath>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "aten/work.hpp"
#include "quantize/annotate.hpp"
#include "quantize/fold_batch_norm.hpp"
#include "quantize/ranges.hpp"

namespace carina::quantize {
namespace {

/// Properties of the values of an input.
struct Values {
  Range range;
  int64_t count = 0;
  bool whole = true;

  void add(const Tensor& tensor) {
    const auto values = tensor.as<float>();
    range = unite(range, rangeOf(values));
    range = {range.min + 0.0f, range.max + 0.0f};  // 0 has no sign
    count += tensor.numElements();
    whole = whole && std::all_of(values.begin(), values.end(), [](float x) { return std::trunc(x) == x; });
  }
  bool constant() const { return range.min == range.max; }
  float largest() const { return std::max(std::abs(range.min), std::abs(range.max)); }
};

/// Whether the values look like bytes of an image: samples of other kinds are hardly ever all whole numbers.
bool looksLikeBytes(const Values& values) {
  constexpr float kMaxOfOthers = 32;
  return values.whole && values.range.min >= 0 && values.range.max >= kMaxOfOthers && values.range.max <= 255;
}

/// A batch norm after the first layer of an input: it records what training saw there.
struct FirstNorm {
  const ir::Value* input = nullptr;
  BatchNormOp norm;
  std::vector<const ir::Node*> between;  // the input and the norm
};

/// The path from the norm back to an input of the graph, through at most one layer; empty if there is none,
/// or if the statistics are those of an untrained norm.
std::optional<FirstNorm> firstNorm(ir::Node* node) {
  const auto norm = asBatchNorm(node);
  if (!norm || norm->input->rank() < 2) return std::nullopt;
  for (const ir::Value* values : {norm->mean, norm->variance})
    if (!values->isConstant() || values->dtype() != DType::Float32) return std::nullopt;
  const auto mean = norm->mean->constant().as<float>(), variance = norm->variance->constant().as<float>();
  const auto is = [](float number) { return [=](float x) { return x == number; }; };
  if (std::ranges::all_of(mean, is(0)) && std::ranges::all_of(variance, is(1))) return std::nullopt;
  FirstNorm first{norm->input, *norm, {}};
  for (bool layer = false; first.input->producer(); first.input = first.input->producer()->operands()[0]) {
    const ir::Node& before = *first.input->producer();
    const bool weighted = asWeighted(before).has_value();
    if (weighted ? layer : !before.def().has(ir::kView) && !ir::isa<aten::ConstantPadNd>(&before))
      return std::nullopt;
    layer |= weighted;
    first.between.insert(first.between.begin(), &before);
  }
  return first.input->isConstant() ? std::nullopt : std::optional(first);
}

/// Mean square distance from the norm's mean, in units of its variance, of the median channel: 1 if the
/// samples resemble the training data. Empty if it cannot be computed or takes too long.
std::optional<double> spreadAt(const FirstNorm& first, std::span<const Sample> samples, size_t input) {
  constexpr size_t kSamples = 4;
  constexpr double kMaxWork = 0x1p27;
  ir::Graph part;
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  mapping[first.input] = part.addInput(first.input->type, first.input->name);
  for (const ir::Node* node : first.between) {
    for (const ir::Value* operand : node->operands())
      if (operand && operand->isConstant())
        mapping.try_emplace(operand, part.addConstant(operand->constant()));
    if (!ir::cloneNode(*node, part, mapping).ok()) return std::nullopt;
  }
  part.setOutputs({mapping.at(first.norm.input)});
  const size_t count = std::min(kSamples, samples.size());
  if (aten::workOf(part) * static_cast<double>(count) > kMaxWork) return std::nullopt;
  const auto executor = aten::Executor::create(part);
  if (!executor.ok()) return std::nullopt;
  const auto mean = first.norm.mean->constant().as<float>(),
             variance = first.norm.variance->constant().as<float>();
  std::vector<double> squares(mean.size(), 0);
  for (size_t s = 0; s < count; ++s) {
    const auto results = executor->run({&samples[s * samples.size() / count][input], 1});
    if (!results.ok()) return std::nullopt;
    const Shape& shape = results->front().shape();
    const std::span<const float> values = results->front().as<float>();
    const auto behind = static_cast<size_t>(numElements({shape.begin() + 2, shape.end()}));
    if (static_cast<size_t>(shape[1]) != mean.size() || values.empty()) return std::nullopt;
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t c = i / behind % mean.size();
      const double distance = static_cast<double>(values[i]) - mean[c];
      squares[c] += distance * distance / (variance[c] + first.norm.eps) * static_cast<double>(mean.size()) /
                    static_cast<double>(values.size() * count);
    }
  }
  const auto middle = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / 2);
  std::nth_element(squares.begin(), middle, squares.end());
  return *middle;
}

/// Warns about samples that are much larger than the training data of the first batch norm.
std::optional<Diagnostic> doubtByNorm(const ir::Graph& graph, std::span<const Sample> samples, size_t input,
                                      const std::string& place) {
  constexpr double kFarther = 10;  // standard deviations: few samples, or dark ones, are off by much less
  constexpr double kMostDigits = 1e6;
  for (ir::Node* node : graph.nodes()) {
    const auto first = firstNorm(node);
    if (!first || first->input != graph.inputs()[input]) continue;
    const auto spread = spreadAt(*first, samples, input);
    if (!spread || !(*spread > kFarther * kFarther)) return std::nullopt;
    const double deviations = std::sqrt(*spread);
    return Diagnostic{fmt::format("with the calibration data, the first batch norm, {}, gets values that are "
                                  "{} standard deviations from its mean on average; in training it was 1",
                                  node->where(),
                                  deviations < kMostDigits ? fmt::format("{:.0f}", deviations)
                                                           : fmt::format("{:.1e}", deviations)),
                      "give samples as the network receives them, after all preprocessing (for images often "
                      "(x / 255 - mean) / deviation)",
                      "", place};
  }
  return std::nullopt;
}

/// Warns about bytes if the network's example input is of another kind.
std::optional<Diagnostic> doubtByExample(const ir::Value& input, const Values& values, const Tensor* given,
                                         const std::string& place) {
  constexpr float kFarther = 8;  // times the example's largest magnitude
  if (!given || given->shape() != input.shape() || given->dtype() != DType::Float32 ||
      given->numElements() == 0)
    return std::nullopt;
  Values example;
  example.add(*given);
  if (!looksLikeBytes(values) || example.constant() || example.largest() * kFarther > values.largest())
    return std::nullopt;
  return Diagnostic{fmt::format("the calibration data holds integers from {} to {}, but the input that the "
                                "network was exported with lies between {:.3g} and {:.3g}",
                                values.range.min, values.range.max, example.range.min, example.range.max),
                    "if images are preprocessed before the network sees them ((x / 255 - mean) / deviation), "
                    "preprocess the samples as well",
                    "", place};
}

}  // namespace

std::vector<Diagnostic> sampleWarnings(const ir::Graph& graph, std::span<const Sample> samples,
                                       std::span<const Tensor> examples) {
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
          {fmt::format("the calibration data is {} everywhere: it has no range", values.range.min),
           "give samples like the network's real inputs", "", place});
      continue;
    }
    const Tensor* example = i < examples.size() ? &examples[i] : nullptr;
    auto doubt = doubtByExample(input, values, example, place);
    if (!doubt) doubt = doubtByNorm(graph, samples, i, place);
    if (doubt) doubts.push_back(std::move(*doubt));
  }
  return doubts;
}

}  // namespace carina::quantize
