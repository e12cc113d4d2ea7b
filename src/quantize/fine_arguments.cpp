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
constexpr int64_t kCodes = 256;

bool isSine(const ir::Node& node) {
  return ir::isa<aten::Sin>(&node) || ir::isa<aten::Cos>(&node);
}

class FineArguments {
 public:
  FineArguments(const Assignment& assignment, const Annotation& annotation, const std::vector<Range>& ranges)
      : assignment_(assignment), annotation_(annotation), ranges_(ranges) {}

  void visit(const ir::Node& node) {
    if (isSine(node)) return widenAbove(kLargestStep, node);
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
    if (!mayWiden(node)) return;
    const std::optional<float> step = largestStep(node);
    if (step && *step > largest) widen(node);
  }

  bool mayWiden(const ir::Node& node) const {
    const auto entry = assignment_.nodes.find(&node);
    return entry != assignment_.nodes.end() && !entry->second.named && !entry->second.wide &&
           entry->second.settings.precision == Precision::Int8 && roleOf(node) != Role::Float;
  }

  /// The largest difference of the operator's arguments for neighbouring codes. Only the first operand of a
  /// chain of functions has codes.
  std::optional<float> largestStep(const ir::Node& node) const {
    std::vector<const ir::Node*> chain;
    const ir::Node* reader = &node;
    std::optional<size_t> group;
    while (!(group = annotation_.groupOfOperand(*reader, 0))) {
      reader = reader->operand(0)->producer();
      if (!reader || !aten::mapsOneTensor(*reader)) return std::nullopt;
      chain.insert(chain.begin(), reader);
    }
    if (annotation_.groups[*group].precision != Precision::Int8 || annotation_.groups[*group].wide)
      return std::nullopt;
    const Range& range = ranges_[*group];
    const double width = (range.max - range.min) / (kCodes - 1);
    Tensor values = Tensor::uninitialized(DType::Float32, {kCodes});
    for (int64_t i = 0; i < kCodes; ++i)
      values.mutableAs<float>()[static_cast<size_t>(i)] =
          static_cast<float>(range.min + width * static_cast<double>(i));
    const auto graph = aten::graphOfChain(chain, {DType::Float32, values.shape()});
    if (!graph.ok()) return std::nullopt;
    const auto results = aten::execute(*graph, std::array{values});
    if (!results.ok()) return std::nullopt;
    const std::span<const float> arguments = results->front().as<float>();
    float largest = 0;
    for (size_t i = 1; i < arguments.size(); ++i)
      largest = std::max(largest, std::abs(arguments[i] - arguments[i - 1]));
    return largest;
  }

  void widen(const ir::Node& last) {
    std::vector<const ir::Node*> pending{&last};
    while (!pending.empty()) {
      const ir::Node& node = *pending.back();
      pending.pop_back();
      if (!mayWiden(node) || !widened_.insert(&node).second) continue;
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
