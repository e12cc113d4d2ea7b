// SPDX-License-Identifier: Apache-2.0
#include "ethosn/support/support.hpp"

#include <fmt/format.h>

#include "ethosn/support/rule.hpp"

namespace carina::ethosn {
namespace support {

const std::vector<TensorInfo>& Context::outputs() {
  if (!outputs_) outputs_ = outputsOf(query.operation, query.inputs);
  return *outputs_;
}

namespace {

Rules makeRules(Operator op) {
  switch (op) {
    case Operator::Convolution:
    case Operator::DepthwiseConvolution:
    case Operator::TransposeConvolution:
      return convolutionRules(op);
    case Operator::FullyConnected:
      return fullyConnectedRules();
    case Operator::Pooling:
      return poolingRules();
    case Operator::Addition:
    case Operator::Multiplication:
    case Operator::Relu:
    case Operator::LeakyRelu:
    case Operator::Requantize:
    case Operator::ReinterpretQuantization:
    case Operator::Sigmoid:
    case Operator::Tanh:
    case Operator::MeanXy:
      return elementwiseRules(op);
    default:
      return shapeRules(op);
  }
}

}  // namespace

const Rules& rulesOf(Operator op) {
  static const std::vector<Rules> all = [] {
    std::vector<Rules> made;
    for (size_t i = 0; i < kOperators; ++i) made.push_back(makeRules(static_cast<Operator>(i)));
    return made;
  }();
  return all[static_cast<size_t>(op)];
}

namespace {

/// The first rule that does not hold.
const Rule* firstBroken(std::span<const Rule> rules, Context& context) {
  for (const Rule& rule : rules) {
    if (!rule.holds(context)) return &rule;
  }
  return nullptr;
}

const Rule* firstBrokenInScope(std::span<const Rule> rules, Context& context) {
  if (rules[0].scope == Scope::Once) return firstBroken(rules, context);
  const size_t count =
      rules[0].scope == Scope::PerInput ? context.query.inputs.size() : context.outputs().size();
  for (context.index = 0; context.index < count; ++context.index) {
    if (const Rule* broken = firstBroken(rules, context)) return broken;
  }
  context.index = 0;
  return nullptr;
}

size_t operandsOf(Operator op) {
  return op == Operator::Addition || op == Operator::Multiplication ? 2 : 1;
}

}  // namespace
}  // namespace support

std::string_view supportLevelName(SupportLevel level) {
  constexpr std::string_view kNames[] = {"unsupported", "estimate-only", "supported"};
  return kNames[static_cast<size_t>(level)];
}

SupportAnswer querySupport(const Target& target, const SupportQuery& query) {
  using namespace support;
  const Operator op = query.operation.op;
  if (op != Operator::Concatenation && op != Operator::EstimateOnly) {
    CARINA_CHECK(query.inputs.size() == operandsOf(op), "a query has as many inputs as its operator");
  }
  const auto fixed = [](const TensorInfo& info) { return !info.quantization.scales.empty(); };
  for (const TensorInfo& info : query.inputs) CARINA_CHECK(fixed(info), "a tensor has a scale");
  Context context(target, query);
  const Rules& rules = rulesOf(op);
  for (size_t begin = 0, end = 0; begin < rules.size(); begin = end) {
    while (end < rules.size() && rules[end].scope == rules[begin].scope) ++end;
    if (const Rule* broken = firstBrokenInScope(std::span(rules).subspan(begin, end - begin), context)) {
      const auto& n = context.numbers;
      return {broken->level, fmt::format(fmt::runtime(broken->text), n[0], n[1], n[2])};
    }
  }
  if (op == Operator::EstimateOnly) return {SupportLevel::EstimateOnly, ""};
  if (op == Operator::Resize && ((query.operation.newShape[1] ^ query.operation.newShape[2]) & 1) != 0) {
    return {SupportLevel::Supported,
            "Requested width and height have different parity, result might be inaccurate"};
  }
  return {};
}

}  // namespace carina::ethosn
