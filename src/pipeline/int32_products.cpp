// SPDX-License-Identifier: Apache-2.0
#include "pipeline/int32_products.hpp"

#include <optional>
#include <unordered_map>

#include "ir/regions.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/ops.hpp"

namespace carina::pipeline {
namespace {

/// Whether the node multiplies int32 values without a shift; TOSA defines products with a shift only within
/// int32.
bool multipliesInt32(const ir::Node& node) {
  const auto product = ir::dynCast<tosa::Mul>(&node);
  return product && product.input1()->dtype() == DType::Int32 && product.shift()->isConstant() &&
         product.shift()->constant().integerAt(0) == 0;
}

/// The first product of broadcast operands that does not fit int32.
std::optional<int64_t> overflowOf(const Tensor& a, const Tensor& b, const Shape& shape) {
  std::vector<int64_t> index(shape.size(), 0);
  const auto at = [&](const Tensor& tensor) {
    int64_t offset = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      offset = offset * tensor.shape()[d] + (tensor.shape()[d] == 1 ? 0 : index[d]);
    return tensor.integerAt(offset);
  };
  for (int64_t i = 0; i < numElements(shape); ++i) {
    const int64_t product = at(a) * at(b);
    if (product < integerMin(DType::Int32) || product > integerMax(DType::Int32)) return product;
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return std::nullopt;
}

}  // namespace

Status checkInt32Products(const ir::Graph& tosa, std::span<const Tensor> inputs, WorkBudget* budget) {
  std::unordered_map<const ir::Value*, Tensor> factors;  // as last computed
  for (const ir::Graph* graph : ir::graphsWithin(tosa)) {
    for (const ir::Node* node : graph->nodes()) {
      if (!multipliesInt32(*node)) continue;
      for (const ir::Value* factor : {node->operand(0), node->operand(1)})
        factors.emplace(factor, factor->isConstant() ? factor->constant() : Tensor());
    }
  }
  if (factors.empty()) return {};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const auto found = factors.find(tosa.inputs()[i]); found != factors.end()) found->second = inputs[i];
  }
  Status status;
  const auto check = [&](const ir::Value& value, const Tensor& tensor) {
    if (const auto found = factors.find(&value); found != factors.end()) found->second = tensor;
    const ir::Node* node = value.producer();
    if (!status.ok() || !node || !multipliesInt32(*node)) return;
    const Tensor &a = factors.at(node->operand(0)), &b = factors.at(node->operand(1));
    if (a.numElements() == 0 || b.numElements() == 0 || a.dtype() != DType::Int32) return;
    const auto product = overflowOf(a, b, value.shape());
    if (!product) return;
    status = fail(Code::NoResult,
                  "the product {} overflows int32: TOSA keeps its low 32 bits, the NPU saturates", *product)
                 .withRemedy("keep the factors smaller, or multiply floats")
                 .at(node->where());
  };
  CARINA_TRY([[maybe_unused]] const std::vector<Tensor> results,
             tosa::interpret(tosa, inputs, check, budget));
  return status;
}

}  // namespace carina::pipeline
