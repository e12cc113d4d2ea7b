// SPDX-License-Identifier: Apache-2.0
#include "quantize/accuracy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "base/parallel.hpp"

namespace carina::quantize {
namespace {

/// Graphs with a value of more elements than this run one at a time: concurrent runs would need several times
/// the memory.
constexpr int64_t kManyElements = int64_t{1} << 23;

bool hasLargeValue(const ir::Graph& graph) {
  const auto isLarge = [](const ir::Value* value) { return value->numElements() > kManyElements; };
  for (const ir::Node* node : graph.nodes()) {
    const auto& results = node->results();
    if (std::any_of(results.begin(), results.end(), [&](const auto& result) { return isLarge(&*result); }))
      return true;
  }
  return false;
}

/// Number of elements from which weights are read in parts, and of each part.
constexpr int64_t kManyWeights = int64_t{1} << 22, kPartWeights = int64_t{1} << 21;

/// `count` slices along the first dimension.
Tensor slicesOf(const Tensor& tensor, int64_t first, int64_t count) {
  Shape shape = tensor.shape();
  const auto bytes = static_cast<size_t>(tensor.numBytes() / shape[0]);
  shape[0] = count;
  return Tensor::borrow(
      tensor.dtype(), std::move(shape),
      tensor.bytes().subspan(static_cast<size_t>(first) * bytes, static_cast<size_t>(count) * bytes),
      std::make_shared<Tensor>(tensor));
}

/// Constant codes per output channel that nothing else reads.
std::optional<aten::DequantizePerChannel> channelCodes(const ir::Value* value) {
  const auto codes = ir::producerAs<aten::DequantizePerChannel>(value);
  if (!codes || codes.axis() != 0 || value->uses().size() != 1 || value->isGraphOutput()) return std::nullopt;
  const auto isConstant = [](const ir::Value* operand) { return !operand || operand->isConstant(); };
  const auto& operands = codes.node()->operands();
  if (!std::all_of(operands.begin(), operands.end(), isConstant)) return std::nullopt;
  return codes;
}

ir::Value* partOf(ir::Builder& builder, const aten::DequantizePerChannel& codes, int64_t first,
                  int64_t count) {
  const auto part = [&](const ir::Value* operand) {
    return operand ? builder.constant(slicesOf(operand->constant(), first, count)) : nullptr;
  };
  return aten::DequantizePerChannel::create(builder, part(codes.input()), part(codes.scales()),
                                            part(codes.zeroPoints()), 0, codes.quantMin(), codes.quantMax(),
                                            codes.dtype(), codes.outDtype());
}

/// Splits linear layers with many weights along their outputs: all weights of a layer as floats (four bytes
/// per code) would need freshly allocated memory, which costs more than the layer itself.
void splitLargeLayers(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    const auto linear = ir::dynCast<aten::Linear>(node);
    if (!linear || linear.weight()->numElements() < kManyWeights) continue;
    const auto weight = channelCodes(linear.weight());
    const auto bias = linear.bias() ? channelCodes(linear.bias()) : std::nullopt;
    if (!weight || (linear.bias() && !bias)) continue;
    const int64_t outputs = linear.weight()->dim(0),
                  most = std::max<int64_t>(1, kPartWeights / linear.weight()->dim(1));
    ir::Builder builder = ir::Builder::beforeNode(node);
    std::vector<ir::Value*> parts;
    for (int64_t first = 0; first < outputs; first += most) {
      const int64_t count = std::min(most, outputs - first);
      ir::Value* weights = partOf(builder, *weight, first, count);
      ir::Value* biases = bias ? partOf(builder, *bias, first, count) : nullptr;
      parts.push_back(aten::Linear::create(builder, linear.input(), weights, biases));
    }
    ir::Value* whole = aten::Cat::create(builder, parts, int64_t{-1});
    graph.replaceAllUses(linear.output(), whole);
  }
  graph.eraseDeadNodes();
}

}  // namespace

Result<std::optional<Accuracy>> estimateAccuracy(const Quantized& quantized, std::span<const Sample> samples,
                                                 size_t most, WorkBudget* loops, const ir::Graph* program) {
  if (!quantized.reference || samples.empty() || most == 0) return std::optional<Accuracy>();
  // Weights stay codes until they are read: for these few runs, converting all of them to float does not pay
  // off.
  constexpr auto kFolding = aten::Folding::NothingThatGrows;
  const size_t count = std::min(most, samples.size());
  const auto sampleOf = [&](size_t i) { return comparedSample(i, most, samples.size()); };
  const auto knows = [&](size_t sample) { return quantized.floatOutputs.count(sample) != 0; };
  std::optional<aten::Executor> real;  // for samples whose outputs calibration has not kept
  for (size_t i = 0; i < count && !real; ++i) {
    if (knows(sampleOf(i))) continue;
    CARINA_TRY(real, aten::Executor::create(*quantized.reference, kFolding, loops));
  }
  const auto inFloat = [&](size_t sample) -> Result<std::vector<Tensor>> {
    return knows(sample) ? quantized.floatOutputs.at(sample) : real->run(samples[sample]);
  };
  ir::Graph simulation = (program ? *program : quantized.graph).clone();
  splitLargeLayers(simulation);
  CARINA_TRY(const aten::Executor rounded, aten::Executor::create(simulation, kFolding, loops));
  const bool large = hasLargeValue(simulation);
  std::vector<Sqnr> outputs(quantized.graph.outputs().size());
  const auto compare = [&](const std::vector<Tensor>& expected, const std::vector<Tensor>& found) {
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (isFloat(expected[k].dtype()) && isFloat(found[k].dtype())) outputs[k].add(expected[k], found[k]);
    }
  };
  if (large) {
    for (size_t i = 0; i < count; ++i) {
      const size_t sample = sampleOf(i);
      CARINA_TRY(const auto expected, inFloat(sample));
      CARINA_TRY(const auto found, rounded.run(samples[sample]));
      compare(expected, found);
    }
  } else {
    // Run 2i is sample i in float; run 2i + 1 is sample i quantized.
    std::vector<Result<std::vector<Tensor>>> runs(2 * count, std::vector<Tensor>());
    parallelFor(runs.size(), [&](size_t i) {
      const size_t sample = sampleOf(i / 2);
      runs[i] = i % 2 == 0 ? inFloat(sample) : rounded.run(samples[sample]);
    });
    for (size_t i = 0; i < count; ++i) {
      CARINA_TRY(const auto expected, std::move(runs[2 * i]));
      CARINA_TRY(const auto found, std::move(runs[2 * i + 1]));
      compare(expected, found);
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

std::optional<Diagnostic> poorAccuracy(const Accuracy& accuracy, bool narrow) {
  // The amplitude of the error is a third of the signal's.
  constexpr double kPoor = 10;
  if (accuracy.decibels >= kPoor) return std::nullopt;
  const std::string which =
      accuracy.outputs > 1 ? fmt::format("the worst of {} outputs has", accuracy.outputs) : "the output has";
  Diagnostic poor;
  poor.message = fmt::format("the integer network differs from the float network: {} about {:.1f} dB SQNR",
                             which, accuracy.decibels);
  poor.remedy = "'carina verify' names the least accurate layers";
  poor.remedy += narrow ? "; --auto-precision gives 16 bits to those that need them"
                        : "; check that the calibration data is like the network's real inputs";
  return poor;
}

}  // namespace carina::quantize
