// SPDX-License-Identifier: Apache-2.0
#include "quantize/fine_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "aten/ops.hpp"
#include "quantize/accuracy.hpp"
#include "quantize/insert.hpp"
#include "quantize/loops.hpp"

namespace carina::quantize {
namespace {

constexpr double kTooLittle = 20, kEnough = 25, kLeastGain = 6;  // decibels
constexpr std::array kSteps = {0.01, 0.001};  // errors after the norm, relative to the row's power
constexpr double kNegligible = 0.002;         // their sum over the network (27 dB), for the mean row
constexpr size_t kCompared = 2;               // samples

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

bool addsOrMoves(const ir::Node& node) {
  return ir::isa<aten::AddTensor>(&node) || ir::isa<aten::SubTensor>(&node) || roleOf(node) == Role::Shared;
}

/// The power of noise relative to the signal.
double noiseOf(double decibels) {
  return std::pow(10.0, -decibels / 10);
}

/// What a norm divides the power of an error by.
struct Divisor {
  double least = std::numeric_limits<double>::infinity();  // of all rows
  double mean = std::numeric_limits<double>::infinity();   // harmonic, over all rows

  void join(const Divisor& other) {
    least = std::min(least, other.least);
    mean = std::min(mean, other.mean);
  }
};

/// Rows whose results are negligible, far below eps, do not count.
Divisor divisorOf(const NormRows& rows) {
  Divisor result;
  double sum = 0;
  for (const float power : rows.power) {
    if (power <= kSteps.front() * rows.eps) continue;
    result.least = std::min(result.least, power + rows.eps);
    sum += 1 / (power + rows.eps);
  }
  if (sum > 0) result.mean = static_cast<double>(rows.power.size()) / sum;
  return result;
}

/// A sum whose result has int8 codes, and which norms read directly or through other sums.
struct Sum {
  const ir::Node* node = nullptr;
  QParams codes;
  double worst = 0, mean = 0;  // the power of the error after the norm, for the faintest row and the mean one
};

class Search {
 public:
  Search(const ir::Graph& graph, const NormRowsOf& inputs, const Assignment& assignment,
         const Annotation& annotation, const std::vector<QParams>& params)
      : graph_(graph), assignment_(assignment), annotation_(annotation), params_(params) {
    for (const auto& [value, rows] : inputs) divisors_[value] = divisorOf(rows);
    const std::vector<ir::Node*> nodes = nodesWithLoops(graph);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) visit(**it);
  }

  const std::vector<Sum>& sums() const { return sums_; }

  /// The sums with larger errors, and the norms that read them.
  std::vector<const ir::Node*> operatorsAbove(double error) const {
    std::vector<const ir::Node*> result;
    for (const Sum& sum : sums_) {
      if (sum.worst <= error) continue;
      result.push_back(sum.node);
      for (const ir::Use& use : sum.node->result()->uses()) {
        if (rowsOf(*use.node) && mayWiden(assignment_, *use.node)) result.push_back(use.node);
      }
    }
    return result;
  }

  /// A copy of the graph in which only the sums with errors up to `error` are rounded to their codes.
  ir::Graph withSums(double error) const {
    Codes codes;
    for (const Sum& sum : sums_) {
      if (sum.worst <= error) codes[sum.node->result()] = sum.codes;
    }
    return rounded(codes);
  }

  /// A copy of the graph in which all values are rounded that do not share the codes of a sum, but no
  /// weights.
  ir::Graph withOthers() const {
    std::set<size_t> ofSums;
    for (const Sum& sum : sums_) ofSums.insert(annotation_.producedIn.at(sum.node->result()));
    Codes codes;
    for (const auto& [value, group] : annotation_.producedIn) {
      if (value->dtype() == DType::Float32 && ofSums.count(group) == 0) codes[value] = params_[group];
    }
    return rounded(codes);
  }

 private:
  /// Readers come before the operators that compute what they read.
  void visit(const ir::Node& node) {
    if (!addsOrMoves(node) || node.results().size() != 1) return;
    const auto divisor = divisors_.find(node.result());
    if (divisor == divisors_.end()) return;
    for (const ir::Value* operand : node.operands()) {
      if (operand && operand->dtype() == DType::Float32) divisors_[operand].join(divisor->second);
    }
    const auto group = annotation_.producedIn.find(node.result());
    if (group == annotation_.producedIn.end() || !mayWiden(assignment_, node)) return;
    const Group& codes = annotation_.groups[group->second];
    if (codes.wide || codes.precision != Precision::Int8) return;
    const QParams& q = params_[group->second];
    const double error = q.scale * q.scale / 12;
    sums_.push_back({&node, q, error / divisor->second.least, error / divisor->second.mean});
  }

  using Codes = std::unordered_map<const ir::Value*, QParams>;

  ir::Graph rounded(const Codes& codes) const {
    ir::Graph copy = graph_.clone();
    const std::vector<ir::Node*> from = nodesWithLoops(graph_), to = nodesWithLoops(copy);
    for (size_t n = 0; n < from.size(); ++n) {
      for (size_t i = 0; i < from[n]->results().size(); ++i) {
        const auto found = codes.find(from[n]->result(i));
        ir::Value* value = to[n]->result(i);
        if (found == codes.end() || value->unused()) continue;
        ir::Graph& inner = graphOf(*value, copy);
        const auto [quantize, real] = insertPair(inner, value, to[n], found->second);
        inner.replaceAllUses(value, real);
        quantize->setOperand(0, value);
      }
    }
    return copy;
  }

  const ir::Graph& graph_;
  const Assignment& assignment_;
  const Annotation& annotation_;
  const std::vector<QParams>& params_;
  std::unordered_map<const ir::Value*, Divisor> divisors_;
  std::vector<Sum> sums_;
};

/// The SQNR of the worst result of a copy of a network; infinite without float results.
Result<double> decibelsOf(ir::Graph copy, const ir::Graph& graph, std::span<const Sample> samples,
                          const FloatOutputs& known, WorkBudget* loops) {
  const Quantized compared{std::move(copy), graph.clone(), {}, {}, {}, known};
  CARINA_TRY(const auto accuracy, estimateAccuracy(compared, samples, kCompared, loops));
  return accuracy ? accuracy->decibels : std::numeric_limits<double>::infinity();
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
    if (rows && mayWiden(assignment, *node) && node->operand(0)->dtype() == DType::Float32)
      inputs.try_emplace(node->operand(0), *rows);
  }
  return inputs;
}

Result<std::vector<const ir::Node*>> operatorsOfFineSums(const ir::Graph& graph, const NormRowsOf& inputs,
                                                         const Assignment& assignment,
                                                         const Annotation& annotation,
                                                         const std::vector<QParams>& params,
                                                         std::span<const Sample> samples,
                                                         const FloatOutputs& known, WorkBudget* loops) {
  const Search search(graph, inputs, assignment, annotation, params);
  double worst = 0, mean = 0;
  for (const Sum& sum : search.sums()) {
    worst = std::max(worst, sum.worst);
    mean += sum.mean;
  }
  if (worst <= kSteps.front() && mean <= kNegligible) return std::vector<const ir::Node*>();
  const auto with = [&](ir::Graph copy) { return decibelsOf(std::move(copy), graph, samples, known, loops); };
  CARINA_TRY(const double sums, with(search.withSums(std::numeric_limits<double>::infinity())));
  if (sums >= kTooLittle) return std::vector<const ir::Node*>();
  CARINA_TRY(const double others, with(search.withOthers()));
  const double both = -10 * std::log10(noiseOf(sums) + noiseOf(others));
  if (others < std::max(kTooLittle, both + kLeastGain)) return std::vector<const ir::Node*>();
  for (const double step : kSteps) {
    if (worst <= step) continue;
    CARINA_TRY(const double rest, with(search.withSums(step)));
    if (rest >= kEnough) return search.operatorsAbove(step);
  }
  return search.operatorsAbove(0);
}

}  // namespace carina::quantize
