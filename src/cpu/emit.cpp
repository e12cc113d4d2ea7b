// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit.hpp"

#include <algorithm>

#include "aten/movement.hpp"
#include "aten/ops.hpp"
#include "cpu/kernel_schema.hpp"
#include "ir/extents.hpp"

namespace carina::cpu {
namespace {

using pte::ValueId;

bool isRowMajorPermutation(const aten::Movement& movement, const Shape& operand, ir::Ints& dims) {
  if (movement.offset != 0 || movement.shape != movement.result || movement.shape.size() != operand.size())
    return false;
  ir::Ints dense(operand.size(), 1);
  for (size_t d = operand.size(); d-- > 1;) dense[d - 1] = dense[d] * operand[d];
  std::vector<bool> taken(operand.size(), false);
  for (size_t d = 0; d < operand.size(); ++d) {
    size_t from = 0;
    while (from < operand.size() &&
           (taken[from] || operand[from] != movement.shape[d] || dense[from] != movement.strides[d]))
      ++from;
    if (from == operand.size()) return false;
    taken[from] = true;
    dims.push_back(static_cast<int64_t>(from));
  }
  return true;
}

class Emitter {
 public:
  Emitter(pte::MethodBuilder& builder, const ir::Node& node, const ValueOf& valueOf)
      : builder_(builder), node_(node), valueOf_(valueOf) {}

  Result<std::vector<ValueId>> run() {
    if (!aten::isOperator(&node_))
      return fail(Code::MissingKernel, "{} is not an operator that a CPU kernel computes", node_.opName());
    for (const auto* values : {&node_.operands(), &node_.results()}) {
      for (const ir::Value* value : *values) {
        if (value && value->dtype() == DType::Float64)
          return fail(Code::MissingKernel,
                      "{} has element type {}, which the runtime's kernels do not support", node_.opName(),
                      dtypeName(DType::Float64))
              .withRemedy("compute in float32 in the network");
      }
    }
    if (auto quantized = emitQuantization()) return std::vector<ValueId>{*quantized};
    if (isConversion())
      return std::vector<ValueId>{builder_.convert(valueOf_(node_.operands()[0]), typeOf(*node_.result()))};
    CARINA_TRY(const auto movements, aten::movements(node_));
    if (movements && isReshape(*movements)) return reshape();
    if (const KernelSchema* schema = findKernelFor(node_.opName())) return call(*schema);
    if (movements) return move(*movements);
    return fail(Code::MissingKernel, "the runtime has no kernel for {}", node_.opName());
  }

 private:
  static pte::ScalarType typeOf(const ir::Value& value) { return pte::fromDType(value.dtype()); }

  static pte::QuantParams params(double scale, int64_t zeroPoint, int64_t low, int64_t high, DType dtype) {
    return {scale, zeroPoint, low, high, pte::fromDType(dtype)};
  }

  std::optional<ValueId> emitQuantization() {
    constexpr auto kKernels = pte::QuantKernels::QuantizedDecomposed;
    if (const auto q = ir::dynCast<aten::QuantizePerTensor>(&node_)) {
      return builder_.quantize(valueOf_(q.input()),
                               params(q.scale(), q.zeroPoint(), q.quantMin(), q.quantMax(), q.dtype()),
                               kKernels);
    }
    if (const auto dq = ir::dynCast<aten::DequantizePerTensor>(&node_)) {
      // The executor's factor, whatever precision the kernel uses to multiply.
      const auto scale = static_cast<double>(static_cast<float>(dq.scale()));
      return builder_.dequantize(valueOf_(dq.input()),
                                 params(scale, dq.zeroPoint(), dq.quantMin(), dq.quantMax(), dq.dtype()),
                                 kKernels);
    }
    return std::nullopt;
  }

  /// An element type conversion, or a copy.
  bool isConversion() const {
    using aten::OpId;
    switch (aten::opId(&node_)) {
      case OpId::ToDtype:
      case OpId::ToDtypeLayout:
      case OpId::ToDevice:
      case OpId::ToOther:
      case OpId::PrivateToCopy:
      case OpId::TypeAs:
      case OpId::Clone:
        return node_.result()->dtype() != DType::Float64 || node_.operands()[0]->dtype() == DType::Float64;
      default:
        return false;
    }
  }

  bool isReshape(const std::vector<aten::Movement>& movements) const {
    return movements.size() == 1 && movements[0].isReshape(node_.operands()[movements[0].operand]->shape());
  }

  Result<std::vector<ValueId>> reshape() {
    return std::vector<ValueId>{builder_.view(valueOf_(node_.operands()[0]), sizesOf(*node_.result()))};
  }

  /// A strided view of an operand: permute_copy if it is a permutation, otherwise as_strided_copy.
  Result<std::vector<ValueId>> move(const std::vector<aten::Movement>& movements) {
    std::vector<ValueId> results;
    for (size_t i = 0; i < movements.size(); ++i) {
      const aten::Movement& movement = movements[i];
      const ir::Value* operand = node_.operands()[movement.operand];
      const ir::Value& result = *node_.result(i);
      ir::Ints dims;
      if (isRowMajorPermutation(movement, operand->shape(), dims)) {
        const ValueId from = valueOf_(operand), order = builder_.integers(dims);
        const ValueId out = builder_.activation(typeOf(result), sizesOf(result));
        builder_.kernel("aten::permute_copy.out", {from, order, out});
        results.push_back(out);
        continue;
      }
      constexpr std::string_view kKernel = "aten::as_strided_copy.out";
      if (!hasKernelNamed(kKernel) ||
          std::any_of(movement.strides.begin(), movement.strides.end(), [](int64_t s) { return s < 0; })) {
        return fail(Code::MissingKernel, "the runtime has no kernel for {}", node_.opName());
      }
      const ValueId from = valueOf_(operand);
      const ValueId sizes = builder_.integers(movement.shape), strides = builder_.integers(movement.strides);
      const ValueId offset = builder_.integer(movement.offset);
      const std::vector<int32_t> shape(movement.shape.begin(), movement.shape.end());
      const ValueId out = builder_.activation(typeOf(result), shape);
      builder_.kernel(kKernel, {from, sizes, strides, offset, out});
      results.push_back(movement.shape == movement.result ? out : builder_.view(out, sizesOf(result)));
    }
    return results;
  }

  Result<std::vector<ValueId>> call(const KernelSchema& schema) {
    std::vector<ValueId> arguments, results;
    for (const KernelArgument& argument : schema.arguments) {
      if (argument.output) continue;
      CARINA_TRY(const ValueId value, argumentOf(argument));
      arguments.push_back(value);
    }
    for (const ir::Value* result : node_.results())
      results.push_back(builder_.activation(typeOf(*result), sizesOf(*result)));
    if (schema.arguments.back().list) {
      const ValueId list = builder_.tensors(results);
      builder_.kernel(schema.kernel, std::move(arguments), std::span(&list, 1));
    } else {
      builder_.kernel(schema.kernel, std::move(arguments), results);
    }
    return results;
  }

  Result<ValueId> argumentOf(const KernelArgument& argument) {
    const ir::OpDef& def = node_.def();
    if (const int operand = def.operandIndex(argument.name); operand >= 0)
      return operandOf(static_cast<size_t>(operand));
    if (const int index = def.attributeIndex(argument.name); index >= 0)
      return attributeOf(node_.attribute(static_cast<size_t>(index)), argument.name);
    // Arguments that only the out variant has keep their defaults.
    if (argument.defaultText == "None") return builder_.null();
    if (argument.defaultText == "False" || argument.defaultText == "True")
      return builder_.boolean(argument.defaultText == "True");
    return fail(Code::MissingKernel, "kernel {} takes an argument {} that {} does not have", schemaName(),
                argument.name, node_.opName());
  }

  std::string_view schemaName() const { return findKernelFor(node_.opName())->kernel; }

  ValueId operandOf(size_t i) {
    const ir::OperandDef& def = node_.def().operands[i];
    const auto group = node_.operandGroup(i);
    if (def.arity == ir::Arity::Variadic) {
      std::vector<ValueId> items;
      for (const ir::Value* value : group) items.push_back(value ? valueOf_(value) : -1);
      return def.nullable ? builder_.optionalTensors(items) : builder_.tensors(items);
    }
    return group.empty() || !group.front() ? builder_.null() : valueOf_(group.front());
  }

  Result<ValueId> attributeOf(const ir::Attribute& attribute, std::string_view name) {
    if (std::holds_alternative<std::monostate>(attribute)) return builder_.null();
    if (const auto* value = std::get_if<bool>(&attribute)) return builder_.boolean(*value);
    if (const auto* value = std::get_if<int64_t>(&attribute)) return builder_.integer(*value);
    if (const auto* value = std::get_if<double>(&attribute)) return builder_.real(*value);
    if (const auto* value = std::get_if<DType>(&attribute))
      return builder_.integer(static_cast<int64_t>(pte::fromDType(*value)));
    if (const auto* value = std::get_if<ir::Ints>(&attribute)) return builder_.integers(*value);
    if (const auto* value = std::get_if<ir::Reals>(&attribute)) return builder_.reals(*value);
    if (const auto* value = std::get_if<std::string>(&attribute)) return builder_.text(*value);
    return fail(Code::NotRepresentable, "argument {} of {} cannot be stored in a program", name,
                node_.opName());
  }

  pte::MethodBuilder& builder_;
  const ir::Node& node_;
  const ValueOf& valueOf_;
};

}  // namespace

std::vector<int32_t> sizesOf(const ir::Value& value) {
  CARINA_CHECK(ir::checkExtents(value.type).ok(), "sizes fit 32 bits");  // graphs hold no other
  return {value.shape().begin(), value.shape().end()};
}

Result<std::vector<ValueId>> emitCall(pte::MethodBuilder& builder, const ir::Node& node,
                                      const ValueOf& valueOf) {
  return Emitter(builder, node, valueOf).run();
}

}  // namespace carina::cpu
