// SPDX-License-Identifier: Apache-2.0
// The figures kept for one sample, and the totals over many. All sums run in sample order, so that merged
// shards are bit-identical to the whole.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::evaluate {

/// How the first output is judged.
enum class Task : uint8_t {
  Compare,   // no labels: against the float results only
  Classify,  // one class per sample: top-1, top-5
  Segment,   // one class per pixel: mIoU, pixel accuracy
  Tokens,    // one class per position: accuracy, perplexity
  Boxes,     // [..., N, 6] rows of x1, y1, x2, y2, score, class: agreement by IoU
};
const char* taskName(Task task);

/// The engine that computes.
enum class Engine : uint8_t { Float, Simulation, Tosa, Npu };
constexpr std::array<Engine, 4> kEngines{Engine::Float, Engine::Simulation, Engine::Tosa, Engine::Npu};
const char* engineName(Engine engine);  // "float", "simulation", "tosa", "npu"

/// Energies of one output against the reference.
struct Energy {
  double reference = 0, error = 0, found = 0, product = 0;  // sums of r^2, (f-r)^2, f^2, f*r
};

/// One sample on one engine.
struct EngineRecord {
  std::vector<int64_t> counts;   // see metrics.cpp
  double loss = 0;               // sum of -ln(probability of the label): Tokens
  int64_t prediction = -1;       // Classify: the class
  std::vector<Energy> energies;  // per float output; empty without a reference, and for the reference itself
  friend bool operator==(const EngineRecord&, const EngineRecord&);
};

struct SampleRecord {
  size_t index = 0;
  std::string name;
  std::vector<std::optional<EngineRecord>> engines;  // in the order of kEngines
  bool npuDiffersFromTosa = false;
  bool flipped = false;       // an engine predicts a class other than float's
  std::string firstBadLayer;  // for a flipped sample; empty: none below the limit
};

/// The task implied by labels of this type and shape for an output of this shape. Errors: none fits.
Result<Task> taskOf(const Tensor* label, const Shape& output);

/// Judges `output` by the label. `reference`: the float output, for Boxes without labels. Errors: a label out
/// of range, shapes that do not match, NaN where a maximum is needed.
Result<EngineRecord> judge(Task task, const Tensor& output, const Tensor* label, const Tensor* reference,
                           double boxIou);
void addEnergies(EngineRecord& record, std::span<const Tensor> outputs, std::span<const Tensor> references);

/// A 95 % confidence interval.
struct Interval {
  double low = 0, high = 0;
};
/// For a proportion, by Wilson's formula: with p = k/n and z = 1.959964 the ends are
/// (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n).
Interval wilson(int64_t successes, int64_t trials);

/// A figure for an engine.
struct Figure {
  std::string name;  // "top-1", "mIoU", "SQNR out0", ...
  double value = 0;  // percent, dB, or plain, according to `unit`
  std::string unit;  // "%", "dB", ""
  std::optional<Interval> interval;
};

struct EngineSummary {
  Engine engine = Engine::Float;
  std::vector<Figure> figures;
  std::optional<double> top1;       // percent
  std::optional<double> worstSqnr;  // dB of the worst output
};

struct Flip {
  size_t index = 0;
  std::string name;
  std::vector<int64_t> predictions;  // in the order of the engines that ran; -1: none
  std::string firstBadLayer;
};

/// Accepts records in index order.
class Summary {
 public:
  Summary(Task task, std::vector<Engine> engines) : task_(task), engines_(std::move(engines)) {}
  void add(const SampleRecord& record);

  size_t samples() const { return samples_; }
  size_t npuDiffersFromTosa() const { return differing_; }
  size_t flips() const { return flips_; }
  const std::vector<Flip>& firstFlips() const { return firstFlips_; }  // at most 100
  /// First bad layers of flipped samples with their counts, most frequent first.
  std::vector<std::pair<std::string, size_t>> badLayers() const;
  std::vector<EngineSummary> engines() const;

 private:
  struct Sums {
    std::vector<int64_t> counts;
    double loss = 0;
    std::vector<Energy> energies;
    std::vector<double> cosines;  // sums over samples
    size_t compared = 0;
  };
  Task task_;
  std::vector<Engine> engines_;
  std::array<Sums, kEngines.size()> sums_;
  size_t samples_ = 0, differing_ = 0, flips_ = 0;
  std::vector<Flip> firstFlips_;
  std::vector<std::pair<std::string, size_t>> badLayers_;
};

}  // namespace carina::evaluate
