// SPDX-License-Identifier: Apache-2.0
// Groups nodes into units and extracts parts from a graph.
#include "partition/units.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "aten/ops.hpp"

namespace carina::partition {
namespace {

DType crossing(DType dtype, bool casts) {
  return casts && dtype == DType::Int64 ? DType::Int32 : dtype;
}

class Joiner {
 public:
  explicit Joiner(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<size_t> parent_;
};

/// Float results stay inside a unit, whatever they connect.
bool connects(const ir::Value& value) {
  return isFloat(value.dtype()) && value.producer() != nullptr;
}

}  // namespace

ir::Value* converted(ir::Builder& builder, ir::Value* value, DType to) {
  ir::NodeSpec spec;
  spec.def = &aten::ToDtype::def();
  spec.operands = {{value}};
  spec.attributes = {to, false, false, {}};
  return builder.create(std::move(spec))->result();
}

bool isQuantize(const ir::Node& node) {
  return ir::isa<aten::QuantizePerTensor>(&node) || ir::isa<aten::QuantizePerChannel>(&node);
}

bool isDequantize(const ir::Node& node) {
  return ir::isa<aten::DequantizePerTensor>(&node) || ir::isa<aten::DequantizePerChannel>(&node);
}

bool isIntegerCast(const ir::Node& node) {
  if (!ir::isa<aten::ToDtype>(&node) && !ir::isa<aten::PrivateToCopy>(&node)) return false;
  const DType from = node.operands()[0]->dtype(), to = node.result()->dtype();
  return (from == DType::Int64 && to == DType::Int32) || (from == DType::Int32 && to == DType::Int64);
}

Status separateDequantizes(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (!isDequantize(*node)) continue;
    const std::vector<ir::Use> uses = node->result()->uses();
    const size_t first = node->result()->isGraphOutput() ? 0 : 1;
    std::vector<ir::Value*> copies;
    for (size_t i = first; i < uses.size(); ++i) {
      std::unordered_map<const ir::Value*, ir::Value*> mapping;
      for (ir::Value* operand : node->operands()) mapping[operand] = operand;
      CARINA_TRY(ir::Node* const copy, ir::cloneNode(*node, graph, mapping, node));
      copy->result()->name.clear();
      copies.push_back(copy->result());
    }
    // The last use first: it is the fastest to remove.
    for (size_t i = uses.size(); i > first; --i)
      uses[i - 1].node->setOperand(uses[i - 1].operand, copies[i - 1 - first]);
  }
  return {};
}

Units findUnits(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& divides) {
  std::vector<ir::Node*> nodes;
  std::unordered_map<const ir::Node*, size_t> indexOf;
  nodes.reserve(graph.numNodes());
  indexOf.reserve(graph.numNodes());
  for (ir::Node* node : graph.nodes()) {
    indexOf[node] = nodes.size();
    nodes.push_back(node);
  }
  Joiner joiner(nodes.size());
  const auto isApart = [&](const ir::Node& node) { return divides && divides(node); };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (isApart(*nodes[i])) continue;
    for (const ir::Value* operand : nodes[i]->operands()) {
      if (operand && connects(*operand) && !isApart(*operand->producer()))
        joiner.join(i, indexOf.at(operand->producer()));
    }
  }
  Units units;
  units.unitOf.reserve(nodes.size());
  std::unordered_map<size_t, size_t> unitOfRoot;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto [it, isNew] = unitOfRoot.emplace(joiner.find(i), units.units.size());
    if (isNew) units.units.emplace_back();
    units.units[it->second].nodes.push_back(nodes[i]);
    units.unitOf[nodes[i]] = it->second;
  }
  for (Unit& unit : units.units) {
    unit.boundary = unit.nodes.size() == 1 && (isQuantize(*unit.nodes[0]) || isDequantize(*unit.nodes[0]));
  }
  return units;
}

Result<Part> extract(const std::vector<ir::Node*>& nodes, const std::string& name, bool casts) {
  Part part{ir::Graph(name), {}, {}};
  const std::unordered_set<const ir::Node*> inside(nodes.begin(), nodes.end());
  std::unordered_map<const ir::Value*, ir::Value*> mapping;
  mapping.reserve(2 * nodes.size());
  const auto bring = [&](ir::Value* value) -> Status {
    if (!value || mapping.count(value) != 0) return {};
    if (value->isConstant()) {
      mapping[value] = part.graph.addConstant(value->constant(), value->name);
      mapping[value]->quantization = value->quantization;
      return {};
    }
    if (isFloat(value->dtype())) {
      return fail(Code::NotQuantized, "value {} is float: it is not quantized",
                  value->name.empty() ? "from outside" : value->name)
          .withRemedy("quantize the network with this operator included");
    }
    ir::Value* input = part.graph.addInput({crossing(value->dtype(), casts), value->shape()}, value->name);
    input->quantization = value->quantization;
    part.inputs.push_back(value);
    ir::Builder builder(part.graph);
    mapping[value] = input->dtype() == value->dtype() ? input : converted(builder, input, value->dtype());
    return {};
  };
  for (const ir::Node* node : nodes) {
    for (ir::Value* operand : node->operands()) CARINA_RETURN_IF_ERROR(bring(operand));
    CARINA_TRY([[maybe_unused]] ir::Node* const copy, ir::cloneNode(*node, part.graph, mapping));
  }
  std::vector<ir::Value*> results;
  for (const ir::Node* node : nodes) {
    for (ir::Value* result : node->results()) {
      const bool usedOutside = result->isGraphOutput() ||
                               std::any_of(result->uses().begin(), result->uses().end(),
                                           [&](const ir::Use& use) { return inside.count(use.node) == 0; });
      if (!usedOutside) continue;
      if (isFloat(result->dtype())) {
        return fail(Code::NotQuantized, "float result {} is not quantized before it leaves the NPU part",
                    result->name)
            .withRemedy("quantize the network with this operator included");
      }
      part.outputs.push_back(result);
      ir::Value* output = mapping.at(result);
      ir::Builder builder(part.graph);
      if (output->dtype() != crossing(output->dtype(), casts)) {
        output = converted(builder, output, crossing(output->dtype(), casts));
        output->name = result->name;
        mapping.at(result)->name.clear();
      }
      results.push_back(output);
    }
  }
  part.graph.setOutputs(std::move(results));
  return part;
}

}  // namespace carina::partition
