// SPDX-License-Identifier: Apache-2.0
#include "quantize/loops.hpp"

#include <algorithm>
#include <unordered_map>

#include "aten/control_flow.hpp"
#include "aten/ops.hpp"
#include "quantize/border_codes.hpp"

namespace carina::quantize {
namespace {

class Border {
 public:
  explicit Border(ir::Node& node) : node_(node), scan_(node), body_(node.region(0)) {}

  void run() {
    for (size_t i = 0; i < node_.operands().size(); ++i) {
      const auto codes = readAs(*body_.inputs()[i]);
      if (!codes) continue;
      if (i < scan_.carried) {
        if (madeOf(*body_.outputs()[i]) != codes) continue;
        give(i, *codes);
      }
      take(i, *codes);
    }
    for (size_t i = scan_.carried; i < body_.outputs().size(); ++i) {
      if (const auto codes = madeOf(*body_.outputs()[i])) give(i, *codes);
    }
    body_.eraseDeadNodes();
  }

 private:
  void take(size_t i, const BorderCodes& codes) {
    ir::Builder b = ir::Builder::beforeNode(&node_);
    node_.setOperand(i, quantized(b, node_.operands()[i], codes));
    become(body_, body_.inputs()[i], codes);
  }

  void give(size_t i, const BorderCodes& codes) {
    body_.setOutput(i, aten::DequantizePerTensor(body_.outputs()[i]->producer()).input());
    ir::Value* result = node_.result(i);
    become(node_.graph(), result, codes);
    if (result->unused()) return;
    const std::vector<ir::Use> uses = result->uses();
    ir::Builder b = ir::Builder::afterNode(&node_);
    ir::Value* real = nullptr;
    const auto number = [&] {
      if (!real) real = dequantized(b, result, codes);
      return real;
    };
    for (const ir::Use& use : uses) {
      const auto dequantize = ir::dynCast<aten::DequantizePerTensor>(use.node);
      // Readers of a removed quantize node have its codes.
      if (!dequantize) use.node->setOperand(use.operand, number());
    }
    ir::Graph& graph = node_.graph();
    for (size_t o = 0; o < graph.outputs().size(); ++o) {
      if (graph.outputs()[o] == result) graph.setOutput(o, number());
    }
  }

  ir::Node& node_;
  aten::Scan scan_;
  ir::Graph& body_;
};

BorderCodes codesOf(const ir::Value& value) {
  const ir::Quantization& q = *value.quantization;
  return {q.scales[0], q.zeroPoints[0], integerMin(value.dtype()), integerMax(value.dtype()), value.dtype()};
}

class Unroller {
 public:
  explicit Unroller(ir::Node& node) : node_(node), scan_(node), b_(ir::Builder::beforeNode(&node)) {}

  Status run() {
    const ir::Graph& body = node_.region(0);
    std::unordered_map<const ir::Value*, ir::Value*> mapping;
    for (const auto& constant : body.constants())
      mapping[constant.get()] = b_.constant(constant->constant(), constant->name);
    const std::vector<ir::Value*>& operands = node_.operands();
    std::vector<ir::Value*> values = operands;
    std::vector<std::vector<ir::Value*>> slices(body.outputs().size());
    for (int64_t turn = 0; turn < scan_.turns; ++turn) {
      const int64_t at = scan_.sliceOf(turn);
      for (size_t i = scan_.carried; i < scan_.carried + scan_.sliced; ++i)
        values[i] = slice(operands[i], *body.inputs()[i], at);
      for (size_t i = 0; i < values.size(); ++i) mapping[body.inputs()[i]] = values[i];
      for (const ir::Node* node : body.nodes()) {
        CARINA_TRY(const ir::Node* copy, ir::cloneNode(*node, node_.graph(), mapping, &node_));
        for (ir::Value* result : copy->results()) result->name.clear();
      }
      for (size_t i = 0; i < body.outputs().size(); ++i) {
        ir::Value* made = mapping.at(body.outputs()[i]);
        if (i < scan_.carried)
          values[i] = made;
        else
          slices[i].push_back(made);
      }
    }
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      ir::Value* whole = i < scan_.carried ? values[i] : joined(std::move(slices[i]), *node_.result(i));
      node_.graph().replaceAllUses(node_.result(i), whole);
    }
    node_.graph().erase(&node_);
    return {};
  }

 private:
  /// As everywhere, codes are moved as the real values that they represent, between conversions.
  ir::Value* slice(ir::Value* whole, const ir::Value& as, int64_t at) {
    const auto pick = [&](ir::Value* from) {
      return aten::SliceTensor::create(b_, from, scan_.dim, at * scan_.chunk, (at + 1) * scan_.chunk);
    };
    if (!as.quantization) return pick(whole);
    const BorderCodes q = codesOf(as);
    return quantized(b_, pick(dequantized(b_, whole, q)), q);
  }

  ir::Value* joined(std::vector<ir::Value*> slices, const ir::Value& as) {
    if (scan_.reverse) std::reverse(slices.begin(), slices.end());
    if (as.quantization) {
      for (ir::Value*& value : slices) value = dequantized(b_, value, codesOf(as));
    }
    ir::Value* whole = aten::Cat::create(b_, std::move(slices), scan_.dim);
    return as.quantization ? quantized(b_, whole, codesOf(as)) : whole;
  }

  ir::Node& node_;
  aten::Scan scan_;
  ir::Builder b_;
};

}  // namespace

std::vector<ir::Node*> nodesWithLoops(const ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : graph.nodes()) {
    nodes.push_back(node);
    if (!node->is(aten::scanDef())) continue;
    const std::vector<ir::Node*> inner = nodesWithLoops(node->region(0));
    nodes.insert(nodes.end(), inner.begin(), inner.end());
  }
  return nodes;
}

ir::Graph& graphOf(const ir::Value& value, ir::Graph& outer) {
  if (value.producer()) return value.producer()->graph();
  return value.uses().empty() ? outer : value.uses().front().node->graph();
}

Status unrollLoops(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (node->is(aten::scanDef()) && aten::Scan(*node).unroll) CARINA_RETURN_IF_ERROR(Unroller(*node).run());
  }
  return {};
}

Status unrollAllLoops(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (node->is(aten::scanDef())) CARINA_RETURN_IF_ERROR(Unroller(*node).run());
  }
  return {};
}

void carryCodes(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (!node->is(aten::scanDef())) continue;
    carryCodes(node->region(0));
    Border(*node).run();
  }
  graph.eraseDeadNodes();
}

}  // namespace carina::quantize
