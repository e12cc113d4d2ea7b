// SPDX-License-Identifier: Apache-2.0
// LOGISTIC and TANH of wide values (wide_functions.hpp): finds where a TOSA graph computes what the hardware
// does.
#include "compiler/legalize/wide_functions.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/dialect/wide_function.hpp"
#include "tosa/interpreter.hpp"
#include "tosa/tosa.hpp"

namespace carina::compiler {
namespace {

constexpr int64_t kCodes = 65536;
/// Codes per run, few enough for intermediate values to stay in the caches.
constexpr int64_t kStep = 4096;
static_assert(kCodes % kStep == 0);

/// Whether these are the function's results for the codes from `first` on.
bool computes(const WideFunction& function, int64_t first, std::span<const int16_t> results) {
  const int64_t half = function.shift > 0 ? int64_t{1} << (function.shift - 1) : 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t code = first + static_cast<int64_t>(i);
    const int64_t v = (code * function.multiplier + half) >> function.shift;
    if (results[i] != npu_ir::wideFunction(function.tanh, v)) return false;
  }
  return true;
}

/// The functions to try for a part: with the multipliers that occur in it, and with its shifts and 0.
std::vector<WideFunction> candidatesFor(const PointwisePart& part) {
  std::vector<int64_t> multipliers, shifts{0};
  const auto numberOf = [](const ir::Value* value) -> std::optional<int64_t> {
    if (!value->isConstant() || value->numElements() != 1) return std::nullopt;
    return value->constant().integerAt(0);
  };
  for (const ir::Node* node : part.nodes) {
    for (size_t i = 0; i < 2 && i < node->operands().size(); ++i) {
      const auto number = numberOf(node->operands()[i]);
      if (!number) continue;
      if (ir::isa<tosa::Mul>(node) && *number > 0 && *number < int64_t{1} << 31)
        multipliers.push_back(*number);
      if (ir::isa<tosa::ArithmeticRightShift>(node) && *number > 0 && *number < 32) shifts.push_back(*number);
    }
  }
  std::vector<WideFunction> candidates;
  for (const int64_t multiplier : multipliers) {
    for (const int64_t shift : shifts) {
      for (const bool tanh : {false, true}) candidates.push_back({tanh, multiplier, shift});
    }
  }
  return candidates;
}

/// The first of these that gives the part's result for every code.
std::optional<WideFunction> functionOf(const PointwisePart& part) {
  std::vector<WideFunction> candidates = candidatesFor(part);
  const auto graph = candidates.empty() ? std::nullopt : graphOf(part, kStep);
  if (!graph) return std::nullopt;
  std::array codes{Tensor::uninitialized(DType::Int16, graph->inputs().front()->shape())};
  for (int64_t first = -kCodes / 2; first < kCodes / 2; first += kStep) {
    const auto numbers = codes[0].mutableAs<int16_t>();
    std::iota(numbers.begin(), numbers.end(), static_cast<int16_t>(first));
    auto outputs = tosa::interpret(*graph, codes);
    if (!outputs.ok() || outputs->front().dtype() != DType::Int16 || outputs->front().numElements() != kStep)
      return std::nullopt;
    const std::span<const int16_t> results = outputs->front().as<int16_t>();
    std::erase_if(candidates,
                  [&](const WideFunction& function) { return !computes(function, first, results); });
    if (candidates.empty()) return std::nullopt;
  }
  return candidates.front();
}

}  // namespace

WideFunctions::WideFunctions(const ir::Graph& tosa) {
  std::unordered_map<std::string, std::optional<WideFunction>> known;
  for (const ir::Node* node : tosa.nodes()) {
    if (!ir::isa<tosa::Rescale>(node) || node->result()->dtype() != DType::Int16) continue;
    const auto part = pointwisePart(node, DType::Int16);
    if (!part) continue;
    const auto [found, isNew] = known.try_emplace(textOf(*part));
    if (isNew) found->second = functionOf(*part);
    if (!found->second) continue;
    matches_.emplace(node, WideFunctionMatch{part->input, *found->second});
    // Users come after what they use.
    for (size_t i = part->nodes.size() - 1; i-- > 0;) {
      const ir::Value* value = part->nodes[i]->result();
      const bool needed = value->isGraphOutput() ||
                          std::any_of(value->uses().begin(), value->uses().end(), [&](const ir::Use& use) {
                            return use.node != node && !inside_.contains(use.node);
                          });
      if (!needed) inside_.insert(part->nodes[i]);
    }
  }
}

}  // namespace carina::compiler
