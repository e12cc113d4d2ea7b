// SPDX-License-Identifier: Apache-2.0
#include "partition/coarse_functions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "aten/executor.hpp"
#include "aten/function_chain.hpp"
#include "aten/ops.hpp"
#include "base/parallel.hpp"
#include "lower/fine_table.hpp"
#include "lower/lower.hpp"
#include "partition/units.hpp"
#include "tosa/interpreter.hpp"

namespace carina::partition {
namespace {

constexpr int64_t kFirstCode = -32768, kLastCode = 32767, kCodeCount = 65536;
/// A smaller share of inaccurate codes is the surroundings of a pole, which few values reach.
constexpr double kManyCodes = 0.01;

/// The nodes from the dequantize node of an int16 value, through functions, to the quantize node; empty if
/// there are others in between.
std::vector<const ir::Node*> chainBefore(const ir::Node& node) {
  const auto quantize = ir::dynCast<aten::QuantizePerTensor>(&node);
  if (!quantize || quantize.dtype() != DType::Int16) return {};
  std::vector<const ir::Node*> chain{&node};
  const ir::Node* at = quantize.input()->producer();
  for (; at && aten::mapsOneTensor(*at); at = at->operand(0)->producer()) chain.push_back(at);
  const auto dequantize = ir::dynCast<aten::DequantizePerTensor>(at);
  if (chain.size() == 1 || !dequantize || dequantize.input()->isConstant() ||
      dequantize.input()->dtype() != DType::Int16)
    return {};
  chain.push_back(at);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Tensor codesInSteps(int64_t step) {
  const int64_t count = kCodeCount / step + (step > 1 ? 1 : 0);
  Tensor codes = Tensor::uninitialized(DType::Int16, {1, count});
  for (int64_t i = 0; i < count; ++i) codes.setIntegerAt(i, std::min(kFirstCode + i * step, kLastCode));
  return codes;
}

/// Whether straight lines between the entries of a table follow the function, judged halfway between entries.
Result<bool> followsLines(std::span<const ir::Node* const> chain) {
  static const Tensor codes = codesInSteps(64);
  CARINA_TRY(const ir::Graph graph,
             aten::graphOfChain(chain.first(chain.size() - 1), {DType::Int16, codes.shape()}));
  CARINA_TRY(const std::vector<Tensor> results, aten::execute(graph, std::array{codes}));
  const std::span<const float> values = results[0].as<float>();
  const double scale = ir::cast<aten::QuantizePerTensor>(chain.back()).scale();
  const auto code = [&](size_t i) {
    return std::clamp(values[i] / scale, static_cast<double>(kFirstCode), static_cast<double>(kLastCode));
  };
  for (size_t i = 1; i + 1 < values.size(); i += 2) {
    const double error = code(i) - (code(i - 1) + code(i + 1)) / 2;
    if (!(std::abs(error) <= static_cast<double>(lower::kTableTolerance))) return false;
  }
  return true;
}

/// Empty if the program computes the function accurately.
Result<std::optional<CoarseFunction>> examine(std::span<const ir::Node* const> chain) {
  CARINA_TRY(const bool follows, followsLines(chain));
  if (follows) return std::optional<CoarseFunction>();
  static const Tensor codes = codesInSteps(1);
  CARINA_TRY(const ir::Graph graph, aten::graphOfChain(chain, {DType::Int16, codes.shape()}));
  CARINA_TRY(const ir::Graph lowered, lower::lowerToTosa(graph));
  CARINA_TRY(const std::vector<Tensor> expected, aten::execute(graph, std::array{codes}));
  CARINA_TRY(std::vector<Tensor> found, tosa::interpret(lowered, std::array{codes}));
  CoarseFunction function{chain[chain.size() - 2], chain.back(), std::move(found[0])};
  int64_t off = 0;
  for (int64_t i = 0; i < kCodeCount; ++i) {
    const int64_t error = std::abs(function.results.integerAt(i) - expected[0].integerAt(i));
    function.worst = std::max(function.worst, error);
    off += error > lower::kTableTolerance;
  }
  if (off == 0) return std::optional<CoarseFunction>();
  function.share = static_cast<double>(off) / kCodeCount;
  return std::optional<CoarseFunction>(std::move(function));
}

}  // namespace

std::vector<CoarseFunction> coarseFunctions(const ir::Graph& graph) {
  std::vector<std::vector<const ir::Node*>> chains;
  for (const ir::Node* node : graph.nodes()) {
    auto chain = chainBefore(*node);
    if (!chain.empty()) chains.push_back(std::move(chain));
  }
  std::vector<std::optional<CoarseFunction>> examined(chains.size());
  parallelFor(chains.size(), [&](size_t i) {
    if (auto result = examine(chains[i]); result.ok()) examined[i] = std::move(*result);
  });
  std::vector<CoarseFunction> coarse;
  for (auto& function : examined) {
    if (function) coarse.push_back(std::move(*function));
  }
  return coarse;
}

ir::Graph withProgramsCodes(const ir::Graph& graph, const std::vector<CoarseFunction>& functions) {
  std::unordered_map<const ir::Value*, ir::Value*> copies;
  ir::Graph copy = graph.clone(&copies);
  for (const CoarseFunction& function : functions) {
    const std::vector<const ir::Node*> chain = chainBefore(*function.quantize);
    ir::Value* const result = copies.at(function.quantize->result());
    ir::Builder builder = ir::Builder::beforeNode(result->producer());
    ir::Value* index = converted(builder, copies.at(chain.front()->operand(0)), DType::Int64);
    index = aten::AddScalar::create(builder, index, -kFirstCode, int64_t{1});
    Tensor table = Tensor::uninitialized(DType::Int16, {kCodeCount});
    for (int64_t i = 0; i < kCodeCount; ++i) table.setIntegerAt(i, function.results.integerAt(i));
    copy.replaceAllUses(result, aten::IndexTensor::create(builder, builder.constant(std::move(table)),
                                                          std::vector<ir::Value*>{index}));
  }
  copy.eraseDeadNodes();
  return copy;
}

std::vector<Diagnostic> warningsOf(const std::vector<CoarseFunction>& functions) {
  std::vector<Diagnostic> warnings;
  std::set<std::string> places;
  for (const CoarseFunction& function : functions) {
    if (function.share < kManyCodes || !places.insert(function.function->where()).second) continue;
    warnings.push_back(
        {fmt::format("{} has more bends or poles in the range of its argument than a table of 513 entries "
                     "follows: {:.0f}% of its results are more than {} codes of 65536 off, the worst {}",
                     function.function->opName(), 100 * function.share, lower::kTableTolerance,
                     function.worst),
         "narrow the range of its argument (clamp it, or subtract whole periods), or give it precision none "
         "in a --quantize-config file",
         "", function.function->where()});
  }
  return warnings;
}

}  // namespace carina::partition
