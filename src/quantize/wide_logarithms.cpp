// SPDX-License-Identifier: Apache-2.0
#include "quantize/wide_logarithms.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#include "aten/ops.hpp"
#include "quantize/inside.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

/// The distance of the results for the two smallest codes, as a share of the results' range, that is too much
/// for results with codes of 8 and 16 bits.
constexpr double kLargestJump8 = 1.0 / 8, kLargestJump16 = 1.0 / 32;
constexpr double kCodes16 = 32767;
constexpr int kMostBetween = 8;     // operators between a root and its logarithm
constexpr size_t kMostWide = 4000;  // operators; such as those of long recurrences, which would become slow

/// log(base) of a logarithm.
std::optional<double> baseOf(const ir::Node& node) {
  if (ir::isa<aten::Log>(&node) || ir::isa<aten::Log1p>(&node)) return 1;
  if (ir::isa<aten::Log2>(&node)) return std::numbers::ln2;
  if (ir::isa<aten::Log10>(&node)) return std::numbers::ln10;
  return std::nullopt;
}

bool addsNumber(const ir::Node& node) {
  return ir::isa<aten::AddScalar>(&node) || ir::isa<aten::SubScalar>(&node);
}

/// Whether the operands need 32 bits if the results do: sums of them, times constants, and roots.
bool passesOn(const ir::Node& node) {
  if (scalingOf(node) || addsNumber(node) || ir::isa<aten::Sqrt>(&node)) return true;
  if (!ir::isa<aten::MulTensor>(&node) && !isProduct(node)) return !isFunction(node) || isClamp(node);
  const auto isConstant = [](const ir::Value* operand) { return operand && operand->isConstant(); };
  return std::any_of(node.operands().begin(), node.operands().end(), isConstant);
}

/// Layers, and what moves or scales a signal.
bool filters(const ir::Node& node) {
  return asWeighted(node) || scalingOf(node) || addsNumber(node) ||
         (roleOf(node) == Role::Shared && !isClamp(node));
}

class LogarithmFinder {
 public:
  LogarithmFinder(const Assignment& assignment, const Annotation& annotation,
                  const std::vector<Range>& ranges)
      : assignment_(assignment), annotation_(annotation), ranges_(ranges) {}

  void visit(const ir::Node& node) {
    const std::optional<double> base = baseOf(node);
    if (!base || !mayChange(node) || !isTooWide(node, *base)) return;
    std::vector<std::pair<const ir::Node*, bool>> pending{{&node, true}};  // whether with 32-bit codes
    while (!pending.empty()) {
      const auto [next, wanted] = pending.back();
      pending.pop_back();
      if (!mayChange(*next)) continue;
      const bool wide = wanted && takesWideCodes(*next);
      if (!(wide ? wide_ : front_).insert(next).second) continue;
      // In front, back to the signal: an error that all frequencies have hides the quiet ones.
      const bool passes = wide ? passesOn(*next) || baseOf(*next) : filters(*next);
      if (!wide && !passes) continue;
      for (const ir::Value* operand : next->operands()) {
        if (operand && operand->producer() && operand->dtype() == DType::Float32)
          pending.emplace_back(operand->producer(), wide && passes);
      }
    }
  }

  WideLogarithms found() const {
    WideLogarithms result;
    if (wide_.size() > kMostWide) return result;
    result.wide.assign(wide_.begin(), wide_.end());
    std::set_difference(front_.begin(), front_.end(), wide_.begin(), wide_.end(),
                        std::back_inserter(result.front));
    return result;
  }

 private:
  bool mayChange(const ir::Node& node) const {
    const auto entry = assignment_.nodes.find(&node);
    return entry != assignment_.nodes.end() && !entry->second.named && !entry->second.wide &&
           entry->second.settings.precision != Precision::Float && roleOf(node) != Role::Float;
  }

  /// Whether the argument is a root, possibly plus a number, whose square is what needs the codes.
  static bool isOfRoot(const ir::Node& node) {
    const ir::Node* producer = node.operand(0)->producer();
    for (int i = 0; i < kMostBetween && producer; ++i) {
      if (!addsNumber(*producer) && !scalingOf(*producer) && !isClamp(*producer)) break;
      producer = producer->operand(0)->producer();
    }
    return producer && ir::isa<aten::Sqrt>(producer);
  }

  /// The results' range says how far apart the arguments are; their own range may include 0 as a margin.
  bool isTooWide(const ir::Node& node, double base) const {
    const ir::Value* result = node.result();
    double factor = base;
    while (!annotation_.groupOf(result)) {
      if (result->uses().size() != 1) return false;
      const ir::Node& reader = *result->uses().front().node;
      const std::optional<double> scaling = scalingOf(reader);
      if (!scaling && !addsNumber(reader)) return false;
      factor /= scaling.value_or(1);
      result = reader.result();
    }
    const size_t group = *annotation_.groupOf(result);
    double width = factor * (static_cast<double>(ranges_[group].max) - ranges_[group].min);
    if (isOfRoot(node)) width *= 2;
    const double jump = std::log1p(std::exp(std::min(width, 100.0)) / kCodes16);
    return jump >
           width * (annotation_.groups[group].precision == Precision::Int8 ? kLargestJump8 : kLargestJump16);
  }

  const Assignment& assignment_;
  const Annotation& annotation_;
  const std::vector<Range>& ranges_;
  std::set<const ir::Node*> wide_, front_;
};

}  // namespace

WideLogarithms operatorsOfWideLogarithms(const ir::Graph& graph, const Assignment& assignment,
                                         const Annotation& annotation, const std::vector<Range>& ranges) {
  LogarithmFinder finder(assignment, annotation, ranges);
  for (const ir::Node* node : nodesWithLoops(graph)) finder.visit(*node);
  return finder.found();
}

}  // namespace carina::quantize
