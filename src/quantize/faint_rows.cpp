// SPDX-License-Identifier: Apache-2.0
#include "quantize/faint_rows.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "aten/executor.hpp"
#include "aten/ops.hpp"
#include "quantize/insert.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

constexpr double kMostNoise = 0.01;  // of a normalized row, relative to its power
constexpr double kEnough = 25;       // decibels
constexpr size_t kCompared = 2;      // samples

std::optional<NormRows> rowsOf(const ir::Node& node) {
  const auto length = [](const ir::Ints& dims) {
    return std::accumulate(dims.begin(), dims.end(), size_t{1},
                           [](size_t n, int64_t dim) { return n * static_cast<size_t>(dim); });
  };
  if (const auto norm = ir::dynCast<aten::LayerNorm>(&node))
    return NormRows{length(norm.normalizedShape()), true, norm.eps(), {}};
  if (const auto norm = ir::dynCast<aten::RmsNorm>(&node)) {
    constexpr double kUsual = std::numeric_limits<float>::epsilon();
    return NormRows{length(norm.normalizedShape()), false, norm.eps().value_or(kUsual), {}};
  }
  return std::nullopt;
}

/// The least power of the rows whose results are not negligible: their power is below a hundredth of eps.
std::optional<double> leastPower(const NormRows& rows) {
  std::optional<double> least;
  for (const float power : rows.power) {
    if (power > kMostNoise * rows.eps && (!least || power < *least)) least = power;
  }
  return least;
}

bool passesOn(const ir::Node& node) {
  return ir::isa<aten::AddTensor>(&node) || ir::isa<aten::SubTensor>(&node) || roleOf(node) == Role::Shared;
}

class Search {
 public:
  Search(const Assignment& assignment, const Annotation& annotation, const std::vector<QParams>& params)
      : assignment_(assignment), annotation_(annotation), params_(params) {}

  void visit(const ir::Value& input, const NormRows& rows) {
    const std::optional<double> power = leastPower(rows);
    if (!power) return;
    const double most = kMostNoise * (*power + rows.eps);
    if (!widenBefore(input, most)) return;
    for (const ir::Use& use : input.uses()) {
      if (rowsOf(*use.node) && mayWiden(assignment_, *use.node)) operators_.insert(use.node);
    }
  }

  FaintRows result() && {
    FaintRows result{{operators_.begin(), operators_.end()}, {}};
    for (const ir::Value* value : values_)
      result.codes.emplace_back(value, params_[annotation_.producedIn.at(value)]);
    return result;
  }

 private:
  /// The noise of rounding a value to its codes.
  double noiseOf(const ir::Value& value) const {
    const auto found = annotation_.producedIn.find(&value);
    if (found == annotation_.producedIn.end()) return 0;
    const Group& group = annotation_.groups[found->second];
    if (group.wide || group.precision != Precision::Int8) return 0;
    const double scale = params_[found->second].scale;
    return scale * scale / 12;
  }

  /// The sums and movements that compute a value, as long as their codes add more noise than `most`. Returns
  /// whether there are any.
  bool widenBefore(const ir::Value& value, double most) {
    bool any = false;
    std::set<const ir::Node*> visited;
    std::vector<const ir::Value*> pending{&value};
    while (!pending.empty()) {
      const ir::Value* result = pending.back();
      pending.pop_back();
      const ir::Node* node = result->producer();
      if (!node || noiseOf(*result) <= most || !passesOn(*node) || !mayWiden(assignment_, *node)) continue;
      if (!visited.insert(node).second) continue;
      operators_.insert(node);
      values_.insert(result);
      any = true;
      for (const ir::Value* operand : node->operands()) {
        if (operand && operand->dtype() == DType::Float32) pending.push_back(operand);
      }
    }
    return any;
  }

  const Assignment& assignment_;
  const Annotation& annotation_;
  const std::vector<QParams>& params_;
  std::set<const ir::Node*> operators_;
  std::set<const ir::Value*> values_;
};

/// A copy of the graph in which only these values are rounded to their codes.
ir::Graph rounded(const ir::Graph& graph, const FaintRows& rows) {
  const std::map<const ir::Value*, QParams> codes(rows.codes.begin(), rows.codes.end());
  ir::Graph copy = graph.clone();
  const std::vector<ir::Node*> from = nodesWithLoops(graph), to = nodesWithLoops(copy);
  for (size_t n = 0; n < from.size(); ++n) {
    for (size_t i = 0; i < from[n]->results().size(); ++i) {
      const auto found = codes.find(from[n]->result(i));
      if (found == codes.end()) continue;
      ir::Value* value = to[n]->result(i);
      ir::Graph& inner = graphOf(*value, copy);
      const auto [quantize, real] = insertPair(inner, value, to[n], found->second);
      inner.replaceAllUses(value, real);
      quantize->setOperand(0, value);
    }
  }
  return copy;
}

}  // namespace

void NormRows::add(std::span<const float> values) {
  if (length == 0) return;
  const size_t rows = values.size() / length;
  if (power.size() < rows) power.resize(rows);
  const auto count = static_cast<double>(length);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, squares = 0;
    for (const float x : values.subspan(r * length, length)) {
      sum += x;
      squares += static_cast<double>(x) * x;
    }
    const double mean = centred ? sum / count : 0;
    power[r] = std::max(power[r], static_cast<float>(squares / count - mean * mean));
  }
}

void NormRows::add(const NormRows& sample) {
  if (power.size() < sample.power.size()) power.resize(sample.power.size());
  for (size_t r = 0; r < sample.power.size(); ++r) power[r] = std::max(power[r], sample.power[r]);
}

NormRowsOf normInputs(const ir::Graph& graph, const Assignment& assignment) {
  NormRowsOf inputs;
  for (const ir::Node* node : nodesWithLoops(graph)) {
    const auto rows = rowsOf(*node);
    if (rows && mayWiden(assignment, *node)) inputs.try_emplace(node->operand(0), *rows);
  }
  return inputs;
}

FaintRows faintRowsOf(const NormRowsOf& inputs, const Assignment& assignment, const Annotation& annotation,
                      const std::vector<QParams>& params) {
  Search search(assignment, annotation, params);
  for (const auto& [input, rows] : inputs) search.visit(*input, rows);
  return std::move(search).result();
}

Result<bool> doFaintRowsMatter(const FaintRows& rows, const ir::Graph& graph, std::span<const Sample> samples,
                               const FloatOutputs& known, WorkBudget* loops) {
  if (rows.operators.empty()) return false;
  constexpr auto kFolding = aten::Folding::NothingThatGrows;
  const ir::Graph copy = rounded(graph, rows);
  CARINA_TRY(const aten::Executor real, aten::Executor::create(graph, kFolding, loops));
  CARINA_TRY(const aten::Executor coarse, aten::Executor::create(copy, kFolding, loops));
  const auto inFloat = [&](size_t sample) -> Result<std::vector<Tensor>> {
    const auto found = known.find(sample);
    return found != known.end() ? found->second : real.run(samples[sample]);
  };
  std::vector<Sqnr> outputs(graph.outputs().size());
  for (size_t i = 0; i < std::min(kCompared, samples.size()); ++i) {
    const size_t sample = comparedSample(i, kCompared, samples.size());
    CARINA_TRY(const std::vector<Tensor> expected, inFloat(sample));
    CARINA_TRY(const std::vector<Tensor> actual, coarse.run(samples[sample]));
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (isFloat(expected[k].dtype())) outputs[k].add(expected[k], actual[k]);
    }
  }
  return std::any_of(outputs.begin(), outputs.end(),
                     [](const Sqnr& output) { return output.decibels() < kEnough; });
}

}  // namespace carina::quantize
