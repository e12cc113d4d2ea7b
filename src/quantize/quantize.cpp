// SPDX-License-Identifier: Apache-2.0
// The quantizer: fold, observe, insert quantize/dequantize nodes.
#include "quantize/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "aten/ops.hpp"
#include "quantize/annotate.hpp"
#include "quantize/calibrate.hpp"

namespace carina::quantize {
namespace {

bool isQuantizationNode(const ir::Node* node) {
  return ir::isa<aten::QuantizePerTensor>(node) || ir::isa<aten::DequantizePerTensor>(node) ||
         ir::isa<aten::QuantizePerChannel>(node) || ir::isa<aten::DequantizePerChannel>(node);
}

std::string modulePathOf(const ir::Value& value) {
  const ir::Node* node = value.producer();
  return node && node->location() ? node->location()->modulePath : "";
}

QParams activationParams(const Range& range, Precision precision) {
  return precision == Precision::Int8 ? affineQParams(range.min, range.max, kInt8Activation, kEpsInt8)
                                      : symmetricQParams(range.min, range.max, kInt16Activation, kEpsInt16);
}

/// Scales of a quantized weight or bias, one per output channel or a single one.
struct WeightCodes {
  Tensor codes;
  std::vector<float> scales;
  bool perChannel = false;
  int axis = 0;
};

/// Elements of channel c along `axis` are visited as f(c, flat index).
template <typename F>
void forEachOfChannel(const Shape& shape, int axis, F f) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[static_cast<size_t>(i)];
  for (size_t i = static_cast<size_t>(axis) + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t channels = shape[static_cast<size_t>(axis)];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inner; ++i)
        f(static_cast<size_t>(c), static_cast<size_t>((o * channels + c) * inner + i));
    }
  }
}

/// Symmetric int8 codes in [-127, 127] by the largest magnitude per channel (or overall).
WeightCodes quantizeWeight(const Tensor& weight, int axis, bool perChannel) {
  const auto values = weight.as<float>();
  const auto channels = static_cast<size_t>(weight.dim(axis));
  std::vector<float> magnitude(channels, 0.0f);
  forEachOfChannel(weight.shape(), axis,
                   [&](size_t c, size_t i) { magnitude[c] = std::max(magnitude[c], std::abs(values[i])); });
  if (!perChannel) magnitude.assign(channels, *std::max_element(magnitude.begin(), magnitude.end()));
  WeightCodes result{Tensor::uninitialized(DType::Int8, weight.shape()), {}, perChannel, axis};
  std::vector<float> inverse;
  for (float m : magnitude) {
    const double scale = symmetricQParams(-m, m, kInt8Weight).scale;
    result.scales.push_back(static_cast<float>(scale));
    // The two operators differ: per channel 1 / scale is a float32 division, per tensor a double one.
    inverse.push_back(perChannel ? 1.0f / static_cast<float>(scale) : static_cast<float>(1.0 / scale));
  }
  const auto codes = result.codes.mutableAs<int8_t>();
  forEachOfChannel(weight.shape(), axis, [&](size_t c, size_t i) {
    codes[i] = static_cast<int8_t>(std::clamp(std::nearbyint(values[i] * inverse[c]), -127.0f, 127.0f));
  });
  if (!perChannel) result.scales.resize(1);
  return result;
}

/// int32 codes at scale input * weight (float32 product), as many scales as the weight has.
WeightCodes quantizeBias(const Tensor& bias, double inputScale, const WeightCodes& weight) {
  const auto values = bias.as<float>();
  WeightCodes result{Tensor::uninitialized(DType::Int32, bias.shape()), {}, weight.perChannel, 0};
  for (float scale : weight.scales) result.scales.push_back(static_cast<float>(inputScale) * scale);
  const auto codes = result.codes.mutableAs<int32_t>();
  for (size_t c = 0; c < values.size(); ++c) {
    const float scale = result.scales[weight.perChannel ? c : 0];
    const float inverse =
        weight.perChannel ? 1.0f / scale : static_cast<float>(1.0 / static_cast<double>(scale));
    const auto limit = static_cast<double>(kInt32Bias.max);
    codes[c] = static_cast<int32_t>(
        std::clamp(static_cast<double>(std::nearbyint(values[c] * inverse)), -limit, limit));
  }
  return result;
}

/// Inserts the nodes; ranges are per group of the annotation.
class Inserter {
 public:
  Inserter(ir::Graph& graph, const Annotation& annotation, const std::vector<Range>& ranges,
           const Options& options)
      : graph_(graph), annotation_(annotation), options_(options) {
    for (const Range& range : ranges) params_.push_back(activationParams(range, options.precision));
  }

  Report run(const std::vector<Range>& ranges) {
    std::vector<WeightedOp> weighted;
    for (ir::Node* node : graph_.nodes()) {
      if (auto op = asWeighted(*node); op && annotation_.groupOf.count(op->input) != 0)
        weighted.push_back(*op);
    }
    for (const WeightedOp& op : weighted) quantizeOperands(op);
    for (size_t g = 0; g < annotation_.groups.size(); ++g) {
      for (ir::Value* value : annotation_.groups[g]) {
        if (value->unused()) continue;
        report(*value, ranges[g], params_[g]);
        if (value->isConstant())
          quantizeConstant(value, params_[g]);
        else
          quantizeValueOf(value, params_[g]);
      }
    }
    graph_.eraseUnusedConstants();
    return std::move(report_);
  }

 private:
  ir::Value* dequantized(ir::Builder& builder, ir::Value* codes, const QParams& q) {
    return aten::DequantizePerTensor::create(builder, codes, q.scale, q.zeroPoint, q.codes.min, q.codes.max,
                                             q.codes.dtype, std::nullopt)
        .output();
  }

  void quantizeValueOf(ir::Value* value, const QParams& q) {
    ir::Builder builder = value->producer() ? ir::Builder::afterNode(value->producer())
                                            : ir::Builder(graph_, graph_.firstNode());
    auto quantized = aten::QuantizePerTensor::create(builder, value, q.scale, q.zeroPoint, q.codes.min,
                                                     q.codes.max, q.codes.dtype);
    ir::Value* real = dequantized(builder, quantized.output(), q);
    graph_.replaceAllUses(value, real);
    quantized.node()->setOperand(0, value);
  }

  void quantizeConstant(ir::Value* value, const QParams& q) {
    Tensor codes = Tensor::uninitialized(q.codes.dtype, value->shape());
    const auto values = value->constant().as<float>();
    for (size_t i = 0; i < values.size(); ++i)
      codes.setIntegerAt(static_cast<int64_t>(i), quantizeValue(values[i], q));
    ir::Builder builder(graph_, graph_.firstNode());
    graph_.replaceAllUses(value, dequantized(builder, builder.constant(std::move(codes)), q));
  }

  /// The dequantized form of weight or bias codes.
  ir::Value* dequantizedWeight(ir::Builder& builder, WeightCodes&& weight, const CodeRange& codes) {
    ir::Value* constant = builder.constant(std::move(weight.codes));
    if (!weight.perChannel) {
      return dequantized(builder, constant, QParams{static_cast<double>(weight.scales[0]), 0, codes});
    }
    const auto channels = static_cast<int64_t>(weight.scales.size());
    ir::Value* scales = builder.constant(Tensor::from(Shape{channels}, weight.scales));
    ir::Value* zeros = builder.constant(Tensor::zeros(DType::Int64, Shape{channels}));
    return aten::DequantizePerChannel::create(builder, constant, scales, zeros, weight.axis, codes.min,
                                              codes.max, codes.dtype, std::nullopt)
        .output();
  }

  void quantizeOperands(const WeightedOp& op) {
    ir::Builder builder = ir::Builder::beforeNode(op.node);
    WeightCodes weight = quantizeWeight(op.weight->constant(), op.weightAxis, options_.perChannelWeights);
    const std::vector<float> scales = weight.scales;
    if (op.bias) {
      const double inputScale = params_[annotation_.groupOf.at(op.input)].scale;
      WeightCodes bias = quantizeBias(op.bias->constant(), inputScale, weight);
      report(op, *op.bias, bias.scales, DType::Int32);
      op.node->setOperandGroup(WeightedOp::kBiasOperand,
                               std::array{dequantizedWeight(builder, std::move(bias), kInt32Bias)});
    }
    report(op, *op.weight, scales, DType::Int8);
    op.node->setOperandGroup(WeightedOp::kWeightOperand,
                             std::array{dequantizedWeight(builder, std::move(weight), kInt8Weight)});
  }

  void report(const ir::Value& value, const Range& range, const QParams& q) {
    report_.tensors.push_back(
        {value.name, modulePathOf(value), range.min, range.max, q.scale, q.zeroPoint, q.codes.dtype, false});
  }

  void report(const WeightedOp& op, const ir::Value& value, const std::vector<float>& scales, DType dtype) {
    const Range range = rangeOf(value.constant().as<float>());
    const float largest = *std::max_element(scales.begin(), scales.end());
    report_.tensors.push_back({value.name, modulePathOf(*op.node->result()), range.min, range.max, largest, 0,
                               dtype, scales.size() > 1});
  }

  ir::Graph& graph_;
  const Annotation& annotation_;
  const Options& options_;
  std::vector<QParams> params_;
  Report report_;
};

/// What a graph that came with quantize nodes says about its tensors.
Report carriedReport(const ir::Graph& graph) {
  Report report;
  for (ir::Node* node : graph.nodes()) {
    const auto q = ir::dynCast<aten::QuantizePerTensor>(node);
    if (!q) continue;
    const double zero = static_cast<double>(q.zeroPoint());
    report.tensors.push_back(
        {q.input()->name, modulePathOf(*q.input()), (static_cast<double>(q.quantMin()) - zero) * q.scale(),
         (static_cast<double>(q.quantMax()) - zero) * q.scale(), q.scale(), q.zeroPoint(), q.dtype(), false});
  }
  return report;
}

Status checkConstants(const ir::Graph& graph) {
  std::vector<Diagnostic> problems;
  for (ir::Node* node : graph.nodes()) {
    const auto op = asWeighted(*node);
    if (!op) continue;
    for (const ir::Value* value : {op->weight, op->bias}) {
      if (!value || value->dtype() != DType::Float32) continue;
      bool nonFinite = false;
      rangeOf(value->constant().as<float>(), &nonFinite);
      if (nonFinite) {
        problems.push_back(
            {fmt::format("{} holds NaN or infinite values", value->name.empty() ? "a weight" : value->name),
             "check the trained model: such weights cannot be quantized", "", node->where()});
      }
    }
  }
  if (!problems.empty()) return Error(std::move(problems));
  return {};
}

}  // namespace

bool carriesQuantization(const ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (isQuantizationNode(node)) return true;
  }
  return false;
}

Result<Quantized> quantize(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                           const Progress& progress) {
  if (carriesQuantization(graph)) {
    Report report = carriedReport(graph);
    return Quantized{std::move(graph), std::move(report)};
  }
  if (samples.empty()) {
    return fail("quantization needs calibration samples")
        .withRemedy("give --calibrate DATA.npz, or --quantize none");
  }
  CARINA_RETURN_IF_ERROR(checkConstants(graph));
  CARINA_RETURN_IF_ERROR(foldBatchNorms(graph));
  const Annotation annotation = annotate(graph);
  CARINA_TRY(const std::vector<Range> ranges, calibrate(graph, annotation, options, samples, progress));
  Report report = Inserter(graph, annotation, ranges, options).run(ranges);
  return Quantized{std::move(graph), std::move(report)};
}

}  // namespace carina::quantize
