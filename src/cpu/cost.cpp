// SPDX-License-Identifier: Apache-2.0
#include "cpu/cost.hpp"

#include <algorithm>

#include "aten/conv_op.hpp"
#include "aten/geometry.hpp"
#include "aten/movement.hpp"
#include "aten/operator_facts.hpp"

namespace carina::cpu {
namespace {

using aten::OpId;

constexpr int64_t kPerMac = 3, kPerMove = 4, kPerArithmetic = 8, kPerConversion = 12, kPerFunction = 80;

int64_t elementsOf(const std::vector<ir::Value*>& values) {
  int64_t most = 0;
  for (const ir::Value* value : values) most = std::max(most, value ? value->numElements() : 0);
  return most;
}

/// Multiply-accumulates of products and convolutions, 0 for others.
int64_t macsOf(const ir::Node& node) {
  if (const auto conv = aten::asConvolution(&node)) {
    const int64_t outputs = conv->transposed ? conv->input->numElements() : node.result()->numElements();
    const int64_t channels = conv->transposed ? conv->outputChannels() : conv->inputChannels();
    int64_t window = channels / std::max<int64_t>(conv->groups, 1);
    for (int64_t d = 2; d < conv->weight->rank(); ++d) window *= conv->weight->dim(d);
    return outputs * window;
  }
  switch (aten::opId(&node)) {
    case OpId::Linear:
    case OpId::Mm:
    case OpId::Bmm:
    case OpId::Matmul:
      return node.result()->numElements() * node.operands()[0]->shape().back();
    case OpId::Addmm:
      return node.result()->numElements() * node.operands()[1]->shape().back();
    default:
      return 0;
  }
}

int64_t perElement(const ir::Node& node) {
  switch (aten::factsOf(node).cost) {
    case aten::CostClass::Arithmetic:
      return kPerArithmetic;
    case aten::CostClass::Function:
      return kPerFunction;
    case aten::CostClass::Conversion:
      return kPerConversion;
  }
  return kPerArithmetic;
}

}  // namespace

int64_t estimateCycles(const ir::Node& node) {
  if (!aten::isOperator(&node) || node.results().empty()) return 0;
  if (const int64_t macs = macsOf(node); macs > 0) return macs * kPerMac;
  const int64_t elements = std::max(elementsOf(node.results()), elementsOf(node.operands()));
  if (ir::isa<aten::AvgPool2d>(&node) || ir::isa<aten::MaxPool2d>(&node) ||
      ir::isa<aten::MaxPool2dWithIndices>(&node)) {
    if (const auto pool = aten::poolGeometry(node)) {
      int64_t window = 1;
      for (int64_t k : pool->kernel) window *= k;
      return node.result()->numElements() * window * kPerArithmetic;
    }
  }
  if (const auto movements = aten::movements(node); movements && *movements) {
    const aten::Movement& first = (*movements)->front();
    const bool reshape =
        (*movements)->size() == 1 && first.isReshape(node.operands()[first.operand]->shape());
    return reshape ? 0 : elementsOf(node.results()) * kPerMove;
  }
  return elements * perElement(node);
}

}  // namespace carina::cpu
