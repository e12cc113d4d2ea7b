// SPDX-License-Identifier: Apache-2.0
#include "compiler/legalize/fold_zeros.hpp"

#include <algorithm>

#include "base/dtype.hpp"
#include "compiler/dialect/npu_ir.hpp"
#include "ir/op_view.hpp"

namespace carina::compiler {
namespace {

using npu_ir::ElementwiseMode;
using npu_ir::OutputStage;

/// Whether all elements of a constant equal `number`.
bool isEverywhere(const ir::Value* value, int64_t number) {
  if (!value || !value->isConstant() || !isInteger(value->dtype())) return false;
  const Tensor& tensor = value->constant();
  for (int64_t n = 0; n < tensor.numElements(); ++n) {
    if (tensor.integerAt(n) != number) return false;
  }
  return true;
}

/// The output stage's result for zero, at any scale; nothing if a table follows.
std::optional<int64_t> resultOfZero(const OutputStage& stage, DType type) {
  if (stage.tableKind != npu_ir::TableKind::NONE) return std::nullopt;
  int64_t number = stage.zeroPoint;
  if (stage.clamp) number = std::clamp(number, stage.clamp->first, stage.clamp->second);
  return std::clamp(number, integerMin(type), integerMax(type));
}

/// Bytes of constants that an operation does not need because its accumulator is always zero; else 0.
int64_t bytesOfZeroAccumulator(const ir::Node* node) {
  if (const auto conv = ir::dynCast<npu_ir::Conv>(node)) {
    const npu_ir::Window window = npu_ir::window(node);
    const bool zero = window.upscale == npu_ir::Upscale::NONE &&
                      isEverywhere(conv.ifm(), window.ifmZeroPoint) && isEverywhere(conv.bias(), 0);
    return zero ? conv.weight()->constant().numBytes() : 0;
  }
  const auto product = ir::dynCast<npu_ir::Elementwise>(node);
  if (!product || product.mode() != ElementwiseMode::MUL) return 0;
  if (isEverywhere(product.ifm(), product.ifmZp())) return product.ifm()->constant().numBytes();
  return isEverywhere(product.ifm2(), product.ifm2Zp()) ? product.ifm2()->constant().numBytes() : 0;
}

/// The operand that a sum with zeros equals; null for other operations.
ir::Value* otherOfSum(const ir::Node* node) {
  const auto sum = ir::dynCast<npu_ir::Elementwise>(node);
  const bool adds = sum && sum.mode() == ElementwiseMode::ADD;
  if (!adds && !(sum && sum.mode() == ElementwiseMode::SUB)) return nullptr;
  const ir::Ints unit{1, 0};
  if (sum.ifmZp() != 0 || sum.ifm2Zp() != 0 || sum.ifmScale() != unit || sum.ifm2Scale() != unit ||
      !npu_ir::outputStage(node).identity())
    return nullptr;
  ir::Value* other = isEverywhere(sum.ifm2(), 0)          ? sum.ifm()
                     : adds && isEverywhere(sum.ifm(), 0) ? sum.ifm2()
                                                          : nullptr;
  return other && other->type == node->result()->type ? other : nullptr;
}

/// The value of all elements of a result, and the bytes of constants that are removed with its operation.
struct Known {
  int64_t number = 0, bytes = 0;
};

std::optional<Known> knownResult(const ir::Node* node) {
  const DType type = node->result()->dtype();
  if (!isInteger(type)) return std::nullopt;
  if (const auto view = ir::dynCast<npu_ir::View>(node)) {
    const ir::Value* input = view.input();
    if (!input->isConstant() || input->dtype() != type || input->numElements() == 0) return std::nullopt;
    const int64_t number = input->constant().integerAt(0);
    if (!isEverywhere(input, number)) return std::nullopt;
    return Known{number, input->constant().numBytes()};
  }
  if (!npu_ir::hasOutputStage(node)) return std::nullopt;
  const int64_t bytes = bytesOfZeroAccumulator(node);
  const auto number = resultOfZero(npu_ir::outputStage(node), type);
  if (bytes == 0 || !number) return std::nullopt;
  return Known{*number, bytes};
}

}  // namespace

void foldZeros(ir::Graph& graph) {
  for (ir::Node* node : graph.nodes()) {
    if (node->results().size() != 1 || node->result()->isGraphOutput()) continue;
    ir::Value* result = node->result();
    if (ir::Value* other = otherOfSum(node)) {
      graph.replaceAllUses(result, other);
    } else if (const auto known = knownResult(node);
               known && result->numElements() * dtypeSize(result->dtype()) <= known->bytes) {
      Tensor tensor = Tensor::zeros(result->dtype(), result->shape());
      for (int64_t n = 0; known->number != 0 && n < tensor.numElements(); ++n)
        tensor.setIntegerAt(n, known->number);
      graph.replaceAllUses(result, ir::Builder::beforeNode(node).constant(std::move(tensor)));
    }
  }
  graph.eraseDeadNodes();
}

}  // namespace carina::compiler
