// SPDX-License-Identifier: Apache-2.0
#include "quantize/fine_arguments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "aten/executor.hpp"
#include "aten/function_chain.hpp"
#include "aten/operator_facts.hpp"
#include "aten/ops.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

/// The distance of codes over two periods. The sine of values rounded to such codes has an SQNR of 37 dB.
constexpr float kLargestStep = 0.05f;
constexpr float kLargestIntegerStep = 1;  // farther apart, codes do not represent all integers
constexpr float kLargestPositionStep = 1.0f / 128;
/// The distance of results for neighbouring codes, as a share of their range: logarithms of small values.
constexpr float kLargestJump = 1.0f / 8;
constexpr int64_t kCodes = 256;

bool isSine(const ir::Node& node) {
  return ir::isa<aten::Sin>(&node) || ir::isa<aten::Cos>(&node);
}

bool isLogarithm(const ir::Node& node) {
  return ir::isa<aten::Log>(&node) || ir::isa<aten::Log2>(&node) || ir::isa<aten::Log10>(&node) ||
         ir::isa<aten::Log1p>(&node);
}

class FineArguments {
 public:
  FineArguments(const Assignment& assignment, const Annotation& annotation, const std::vector<Range>& ranges)
      : assignment_(assignment), annotation_(annotation), ranges_(ranges) {}

  void visit(const ir::Node& node) {
    if (isSine(node)) return widenAbove(kLargestStep, node);
    if (isLogarithm(node)) return widenLogarithm(node);
    if (!isTruncation(node)) return;
    const ir::Node* position = node.operand(0)->producer();
    if (!position || !isRoundingFunction(*position)) return widenAbove(kLargestIntegerStep, node);
    widenAbove(kLargestPositionStep, *position);
    if (widened_.count(position) == 0) return;
    widen(node);
    for (const ir::Use& use : position->result()->uses()) {
      // position - floor(position)
      if (ir::isa<aten::SubTensor>(use.node) && use.node->operand(0) == position->operand(0))
        widen(*use.node);
    }
  }

  const std::set<const ir::Node*>& widened() const { return widened_; }

 private:
  void widenAbove(float largest, const ir::Node& node) {
    if (!mayWiden(assignment_, node)) return;
    if (largestStep(resultsOfCodes(node, false)) > largest) widen(node);
  }

  void widenLogarithm(const ir::Node& node) {
    if (!mayWiden(assignment_, node)) return;
    const std::vector<float> results = resultsOfCodes(node, true);
    const auto finite = [](float x) { return std::isfinite(x); };
    if (results.empty() || !std::all_of(results.begin(), results.end(), finite)) return;
    const auto [least, most] = std::minmax_element(results.begin(), results.end());
    if (largestStep(results) > kLargestJump * (*most - *least)) widen(node);
  }

  /// The operator's arguments for all int8 codes, or its results; empty if they are not computed from codes.
  /// Only the first operand of a chain of functions has codes.
  std::vector<float> resultsOfCodes(const ir::Node& node, bool included) const {
    std::vector<const ir::Node*> chain;
    if (included) chain.push_back(&node);
    const ir::Node* reader = &node;
    std::optional<size_t> group;
    while (!(group = annotation_.groupOfOperand(*reader, 0))) {
      reader = reader->operand(0)->producer();
      if (!reader || !aten::mapsOneTensor(*reader)) return {};
      chain.insert(chain.begin(), reader);
    }
    if (annotation_.groups[*group].precision != Precision::Int8 || annotation_.groups[*group].wide) return {};
    const Range& range = ranges_[*group];
    const double width = (range.max - range.min) / (kCodes - 1);
    Tensor values = Tensor::uninitialized(DType::Float32, {kCodes});
    for (int64_t i = 0; i < kCodes; ++i)
      values.mutableAs<float>()[static_cast<size_t>(i)] =
          static_cast<float>(range.min + width * static_cast<double>(i));
    const auto graph = aten::graphOfChain(chain, {DType::Float32, values.shape()});
    if (!graph.ok()) return {};
    const auto results = aten::execute(*graph, std::array{values});
    if (!results.ok()) return {};
    const std::span<const float> all = results->front().as<float>();
    return {all.begin(), all.end()};
  }

  static float largestStep(std::span<const float> values) {
    float largest = 0;
    for (size_t i = 1; i < values.size(); ++i)
      largest = std::max(largest, std::abs(values[i] - values[i - 1]));
    return largest;
  }

  void widen(const ir::Node& last) {
    std::vector<const ir::Node*> pending{&last};
    while (!pending.empty()) {
      const ir::Node& node = *pending.back();
      pending.pop_back();
      if (!mayWiden(assignment_, node) || !widened_.insert(&node).second) continue;
      const bool passesOn = &node == &last || aten::factsOf(node).tosa == aten::TosaForm::Elementwise ||
                            roleOf(node) == Role::Shared;
      if (!passesOn) continue;
      for (const ir::Value* operand : node.operands()) {
        if (operand && operand->dtype() == DType::Float32 && operand->producer())
          pending.push_back(operand->producer());
      }
    }
  }

  const Assignment& assignment_;
  const Annotation& annotation_;
  const std::vector<Range>& ranges_;
  std::set<const ir::Node*> widened_;
};

}  // namespace

std::vector<const ir::Node*> operatorsOfFineArguments(const ir::Graph& graph, const Assignment& assignment,
                                                      const Annotation& annotation,
                                                      const std::vector<Range>& ranges) {
  FineArguments arguments(assignment, annotation, ranges);
  for (const ir::Node* node : nodesWithLoops(graph)) arguments.visit(*node);
  return {arguments.widened().begin(), arguments.widened().end()};
}

}  // namespace carina::quantize
