// SPDX-License-Identifier: Apache-2.0
#include "quantize/insert.hpp"

#include <algorithm>
#include <cmath>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "quantize/loops.hpp"
#include "quantize/weight_codes.hpp"

namespace carina::quantize {
namespace {

ir::Value* dequantized(ir::Builder& builder, ir::Value* codes, const QParams& q) {
  return aten::DequantizePerTensor::create(builder, codes, q.scale, q.zeroPoint, q.codes.min, q.codes.max,
                                           q.codes.dtype);
}

class Inserter {
 public:
  Inserter(ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
           const std::vector<Range>& ranges, const std::vector<QParams>& params, LayerCodes codes)
      : graph_(graph),
        annotation_(annotation),
        assignment_(assignment),
        ranges_(ranges),
        params_(params),
        codes_(std::move(codes)) {}

  Report run() {
    quantizeLayers();
    // Forms of other precisions read the form that is made, so the latter comes first.
    for (const bool made : {true, false}) {
      for (size_t g = 0; g < annotation_.groups.size(); ++g) {
        for (const Form& form : annotation_.groups[g].forms) {
          if (form.made == made) insert(form, g);
        }
      }
    }
    for (ir::Node* node : nodesWithLoops(graph_)) {
      if (node->is(aten::scanDef())) node->region(0).eraseUnusedConstants();
    }
    graph_.eraseUnusedConstants();
    return std::move(report_);
  }

 private:
  void insert(const Form& form, size_t group) {
    ir::Value* value = form.value;
    if (form.made ? value->unused() : form.readers.empty() && !form.leaves) return;
    const QParams& q = params_[group];
    if (value->isConstant()) {
      quantizeConstant(form, group);
      return;
    }
    report(*value, group);
    ir::Graph& graph = graphOf(*value, graph_);
    if (form.made) {
      const auto [quantized, real] = insertPair(graph, value, value->producer(), q);
      graph.replaceAllUses(value, real);
      quantized->setOperand(0, value);
      producedAs_[value] = real;
      return;
    }
    const auto made = producedAs_.find(value);
    ir::Value* from = made == producedAs_.end() ? value : made->second;
    const auto sameUse = [](const ir::Use& a, const ir::Use& b) {
      return a.node == b.node && a.operand == b.operand;
    };
    const bool all =
        form.leaves == from->isGraphOutput() && std::equal(form.readers.begin(), form.readers.end(),
                                                           from->uses().begin(), from->uses().end(), sameUse);
    const auto [quantized, real] = insertPair(graph, from, from->producer(), q);
    if (all) {
      graph.replaceAllUses(from, real);
      quantized->setOperand(0, from);
      return;
    }
    for (const ir::Use& use : form.readers) use.node->setOperand(use.operand, real);
    if (!form.leaves) return;
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      if (graph.outputs()[i] == from) graph.setOutput(i, real);
    }
  }

  void quantizeConstant(const Form& form, size_t group) {
    const QParams& q = params_[group];
    const Tensor& constant = form.value->constant();
    Tensor codes = Tensor::uninitialized(q.codes.dtype, constant.shape());
    report(*form.value, group);
    TensorReport& entry = report_.tensors.back();
    entry.isConstant = true;
    const auto values = constant.as<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t code = quantizeValue(values[i], q);
      codes.setIntegerAt(static_cast<int64_t>(i), code);
      if (std::isfinite(values[i])) entry.sqnr.add(values[i], dequantizeValue(code, q));
    }
    ir::Graph& graph = graphOf(*form.value, graph_);
    ir::Builder builder(graph, graph.firstNode());
    ir::Value* result = dequantized(builder, builder.constant(std::move(codes)), q);
    for (const ir::Use& use : form.readers) use.node->setOperand(use.operand, result);
  }

  /// The dequantized form of weight or bias codes.
  static ir::Value* dequantizedWeight(ir::Builder& builder, WeightCodes&& weight) {
    const CodeRange codes = weight.range;
    ir::Value* constant = builder.constant(std::move(weight.codes));
    if (!weight.perChannel) {
      return dequantized(builder, constant, QParams{static_cast<double>(weight.scales[0]), 0, codes});
    }
    const auto channels = static_cast<int64_t>(weight.scales.size());
    ir::Value* scales = builder.constant(Tensor::from(Shape{channels}, weight.scales));
    ir::Value* zeros = builder.constant(Tensor::zeros(DType::Int64, Shape{channels}));
    return aten::DequantizePerChannel::create(builder, constant, scales, zeros, weight.axis, codes.min,
                                              codes.max, codes.dtype);
  }

  void quantizeLayers() {
    std::vector<std::pair<WeightedOp, double>> layers;  // and input scales
    for (ir::Node* node : nodesWithLoops(graph_)) {
      const auto op = asWeighted(*node);
      const auto scales = op ? layerScales(*node, annotation_, params_) : std::nullopt;
      if (scales) layers.emplace_back(*op, scales->input);
    }
    for (const auto& [op, inputScale] : layers) quantizeLayer(op, inputScale);
  }

  void quantizeLayer(const WeightedOp& op, double inputScale) {
    const Settings& settings = assignment_.of(*op.node).settings;
    ir::Builder builder = ir::Builder::beforeNode(op.node);
    WeightCodes weight = std::move(codes_.at(op.node));
    if (op.bias) {
      WeightCodes bias = quantizeBias(op.bias->constant(), inputScale, weight, settings.precision);
      report(op, *op.bias, bias);
      op.node->setOperandGroup(WeightedOp::kBiasOperand,
                               std::array{dequantizedWeight(builder, std::move(bias))});
    }
    report(op, *op.weight, weight);
    op.node->setOperandGroup(WeightedOp::kWeightOperand,
                             std::array{dequantizedWeight(builder, std::move(weight))});
  }

  void report(const ir::Value& value, size_t group) {
    const QParams& q = params_[group];
    const Range& range = ranges_[group];
    report_.tensors.push_back({value.name,
                               modulePathOf(value),
                               range.min,
                               range.max,
                               q.scale,
                               q.zeroPoint,
                               q.codes.dtype,
                               false,
                               false,
                               {}});
  }

  void report(const WeightedOp& op, const ir::Value& value, const WeightCodes& codes) {
    const Range range = rangeOf(value.constant().as<float>());
    const float largest = *std::max_element(codes.scales.begin(), codes.scales.end());
    const bool isWeight = codes.codes.dtype() == DType::Int8;
    const std::string name =
        value.name.empty() ? op.node->result()->name + (isWeight ? ".weight" : ".bias") : value.name;
    TensorReport entry{name,
                       modulePathOf(*op.node->result()),
                       range.min,
                       range.max,
                       largest,
                       0,
                       codes.codes.dtype(),
                       codes.perChannel,
                       true,
                       {}};
    if (isWeight && codes.range != kInt8Weight)
      entry.weightBits = assignment_.of(*op.node).settings.weightBits;
    entry.sqnr = codes.sqnr(value.constant());
    report_.tensors.push_back(std::move(entry));
  }

  ir::Graph& graph_;
  const Annotation& annotation_;
  const Assignment& assignment_;
  const std::vector<Range>& ranges_;
  const std::vector<QParams>& params_;
  LayerCodes codes_;
  std::unordered_map<const ir::Value*, ir::Value*> producedAs_;
  Report report_;
};

}  // namespace

Report insertQuantization(ir::Graph& graph, const Annotation& annotation, const Assignment& assignment,
                          const std::vector<Range>& ranges, const std::vector<QParams>& params,
                          LayerCodes codes) {
  return Inserter(graph, annotation, assignment, ranges, params, std::move(codes)).run();
}

std::pair<ir::Node*, ir::Value*> insertPair(ir::Graph& graph, ir::Value* value, ir::Node* after,
                                            const QParams& q) {
  ir::Builder builder = after ? ir::Builder::afterNode(after) : ir::Builder(graph, graph.firstNode());
  auto quantized = aten::QuantizePerTensor::create(builder, value, q.scale, q.zeroPoint, q.codes.min,
                                                   q.codes.max, q.codes.dtype);
  return {quantized.node(), dequantized(builder, quantized.output(), q)};
}

std::string modulePathOf(const ir::Value& value) {
  const ir::Node* node = value.producer();
  return node && node->location() ? node->location()->modulePath : "";
}

}  // namespace carina::quantize
