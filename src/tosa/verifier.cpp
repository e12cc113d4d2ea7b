// SPDX-License-Identifier: Apache-2.0
// Profiles, extensions and levels of a whole graph.
#include "ir/verifier.hpp"

#include "tosa/node_checker.hpp"
#include "tosa/tosa.hpp"

namespace carina::tosa {

const Level kLevelNone{"NONE", 32, INT32_MAX, INT32_MAX, 2048, 63, 256, 256};
const Level kLevel8K{"8K", 6, 8192, 8192, 256, 31, 6, 64};

std::string extensionNames(uint32_t extensions) {
  static constexpr std::string_view kNames[] = {
      "PRO-INT", "PRO-FP",          "EXT-INT16",       "EXT-INT4",         "EXT-BF16",
      "EXT-FFT", "EXT-CONTROLFLOW", "EXT-DOUBLEROUND", "EXT-INEXACTROUND", "EXT-VARIABLE"};
  std::string text;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (extensions & (1u << i)) text += (text.empty() ? "" : " or ") + std::string(kNames[i]);
  }
  return text;
}

namespace {

class LevelChecker {
 public:
  LevelChecker(const VerifyOptions& options, std::vector<Diagnostic>& errors)
      : options_(options), errors_(errors) {}

  void graph(const ir::Graph& graph, int64_t nesting) {
    for (const ir::Value* input : graph.inputs()) {
      if (auto status = tensor(*input); !status.ok())
        add(std::move(status).error().at("input " + input->name));
    }
    for (const auto& constant : graph.constants()) {
      if (auto status = tensor(*constant); !status.ok())
        add(std::move(status).error().at("constant " + constant->name));
    }
    for (const ir::Value* output : graph.outputs()) {
      if (output->dtype() == DType::Shape) {
        add(broken("WrongOutputType", "a shape value cannot be an output of a graph")
                .at("output " + output->name));
      }
    }
    for (const ir::Node* node : graph.nodes()) {
      if (!isOperator(node)) {
        add(broken("UnknownOperator", "{} is not a TOSA operator", node->opName()).at(node->where()));
        continue;
      }
      if (auto status = check(*node, nesting); !status.ok()) add(std::move(status).error().at(node->where()));
      for (const auto& region : node->regions()) {
        if (region) this->graph(*region, nesting + 1);
      }
    }
  }

 private:
  const Level& level() const { return *options_.level; }

  void add(const Error& error) {
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      if (errors_.size() < 20) errors_.push_back(diagnostic);
    }
  }

  Status limit(int64_t value, int64_t most, std::string_view what) const {
    if (value <= most) return {};
    return broken("LevelCheck", "{} {} exceeds {}, the limit of level {}", what, value, most, level().name);
  }

  Status tensor(const ir::Value& value) const {
    if (value.dtype() == DType::Shape) return {};
    for (int64_t size : value.shape()) {
      if (size < 1)
        return broken("DimensionSmallerOne", "tensor '{}' has shape {}", value.name,
                      shapeText(value.shape()));
    }
    CARINA_RETURN_IF_ERROR(limit(value.rank(), level().maxRank, "rank"));
    const auto count = checkedNumElements(value.shape());
    const auto bytes = count ? checkedMul(*count, dtypeSize(value.dtype())) : std::nullopt;
    if (!bytes || (level().maxLog2Size < 63 && *bytes >= (int64_t{1} << level().maxLog2Size))) {
      return broken("MaxDimExceeded", "tensor {} is larger than level {} allows", ir::typeText(value.type),
                    level().name);
    }
    return {};
  }

  Status check(const ir::Node& node, int64_t nesting) const {
    for (const ir::Value* operand : node.operands()) CARINA_RETURN_IF_ERROR(tensor(*operand));
    for (const ir::Value* result : node.results()) CARINA_RETURN_IF_ERROR(tensor(*result));
    CARINA_RETURN_IF_ERROR(extension(node));
    CARINA_RETURN_IF_ERROR(lists(node));
    if (!node.regions().empty())
      CARINA_RETURN_IF_ERROR(limit(nesting + 1, level().maxNesting, "nesting of control flow"));
    return window(node);
  }

  Status allowed(uint32_t anyOf, std::string_view what) const {
    if (anyOf & options_.extensions) return {};
    return broken("ProfileOrExtension", "{} needs {}", what, extensionNames(anyOf));
  }

  Status extension(const ir::Node& node) const {
    switch (opId(&node)) {
      case OpId::CondIf:
      case OpId::WhileLoop:
        return allowed(kExtControlFlow, node.opName());
      case OpId::Variable:
      case OpId::VariableRead:
      case OpId::VariableWrite:
        return allowed(kExtVariable, node.opName());
      case OpId::Rescale: {
        const auto mode = ir::cast<Rescale>(&node).roundingMode();
        if (mode == RoundingMode::DOUBLE_ROUND)
          CARINA_RETURN_IF_ERROR(allowed(kExtDoubleRound, "DOUBLE_ROUND"));
        if (mode == RoundingMode::INEXACT_ROUND)
          CARINA_RETURN_IF_ERROR(allowed(kExtInexactRound, "INEXACT_ROUND"));
        break;
      }
      default:
        break;
    }
    uint32_t anyOf = 0;
    for (const TypeRow& row : factsOf(node.def()).types) {
      if (matches(row, node)) anyOf |= row.extensions;
    }
    if (anyOf == 0) return {};
    return allowed(anyOf, fmt::format("{} on {}", node.opName(), ir::typeText(typeOf(node))));
  }

  static const ir::Type& typeOf(const ir::Node& node) {
    return node.operands().empty() ? node.result()->type : node.operands()[0]->type;
  }

  static bool matches(const TypeRow& row, const ir::Node& node) {
    const auto fits = [](uint8_t code, DType dtype) {
      return code == TypeRow::kAny || code == static_cast<uint8_t>(dtype);
    };
    for (size_t i = 0; i < node.def().operands.size(); ++i) {
      for (const ir::Value* value : node.operandGroup(i)) {
        if (!fits(row.operands[i], value->dtype())) return false;
      }
    }
    for (size_t i = 0; i < node.results().size(); ++i) {
      if (!fits(row.results[i], node.result(i)->dtype())) return false;
    }
    return true;
  }

  Status lists(const ir::Node& node) const {
    const auto results = static_cast<int64_t>(node.results().size());
    CARINA_RETURN_IF_ERROR(limit(results, level().maxListSize, "number of results"));
    for (size_t i = 0; i < node.def().operands.size(); ++i) {
      const auto count = static_cast<int64_t>(node.operandGroup(i).size());
      CARINA_RETURN_IF_ERROR(limit(count, level().maxListSize, "number of operands"));
    }
    return {};
  }

  Status all(const ir::Ints& values, int64_t most, std::string_view what) const {
    for (int64_t value : values) CARINA_RETURN_IF_ERROR(limit(value, most, what));
    return {};
  }

  /// dilation * kernel per axis; kernel sizes start at `first` in the weight's shape.
  template <typename Op>
  Status convolution(const Op& op, size_t first) const {
    CARINA_RETURN_IF_ERROR(all(op.pad(), level().maxKernel, "padding"));
    CARINA_RETURN_IF_ERROR(all(op.stride(), level().maxStride, "stride"));
    for (size_t i = 0; i < op.dilation().size(); ++i) {
      const auto extent = checkedMul(op.dilation()[i], op.weight()->shape()[first + i]);
      CARINA_RETURN_IF_ERROR(limit(extent.value_or(INT64_MAX), level().maxKernel, "dilated kernel size"));
    }
    return {};
  }

  Status pooling(const ir::Node& node) const {
    CARINA_RETURN_IF_ERROR(all(node.attributeAs<ir::Ints>(0), level().maxKernel, "kernel size"));
    CARINA_RETURN_IF_ERROR(all(node.attributeAs<ir::Ints>(1), level().maxStride, "stride"));
    return all(node.attributeAs<ir::Ints>(2), level().maxKernel, "padding");
  }

  Status window(const ir::Node& node) const {
    switch (opId(&node)) {
      case OpId::Conv2d:
        return convolution(ir::dynCast<Conv2d>(&node), 1);
      case OpId::Conv3d:
        return convolution(ir::dynCast<Conv3d>(&node), 1);
      case OpId::DepthwiseConv2d:
        return convolution(ir::dynCast<DepthwiseConv2d>(&node), 0);
      case OpId::TransposeConv2d: {
        const auto op = ir::cast<TransposeConv2d>(&node);
        CARINA_RETURN_IF_ERROR(all(op.outPad(), level().maxKernel, "padding"));
        CARINA_RETURN_IF_ERROR(all(op.stride(), level().maxStride, "stride"));
        CARINA_RETURN_IF_ERROR(limit(op.weight()->dim(1), level().maxKernel, "kernel size"));
        return limit(op.weight()->dim(2), level().maxKernel, "kernel size");
      }
      case OpId::AvgPool2d:
      case OpId::MaxPool2d:
        return pooling(node);
      case OpId::Fft2d:
      case OpId::Rfft2d:
        CARINA_RETURN_IF_ERROR(limit(node.operand(0)->dim(1), level().maxKernel, "height"));
        return limit(node.operand(0)->dim(2), level().maxKernel, "width");
      case OpId::Resize: {
        const auto scale = shapeValues(ir::cast<Resize>(&node).scale());
        CARINA_RETURN_IF_ERROR(limit(scale[0] / scale[1], level().maxScale, "scale"));
        return limit(scale[2] / scale[3], level().maxScale, "scale");
      }
      default:
        return {};
    }
  }

  const VerifyOptions& options_;
  std::vector<Diagnostic>& errors_;
};

}  // namespace

Status verify(const ir::Graph& graph, const VerifyOptions& options) {
  CARINA_RETURN_IF_ERROR(ir::verify(graph));
  std::vector<Diagnostic> errors;
  LevelChecker(options, errors).graph(graph, 0);
  if (errors.empty()) return {};
  return Error(std::move(errors));
}

}  // namespace carina::tosa
