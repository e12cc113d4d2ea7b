// SPDX-License-Identifier: Apache-2.0
// Post-training quantization: a float aten graph and calibration samples in, the same graph with explicit
// quantized_decomposed quantize/dequantize nodes out (the form PT2E produces). Graphs that already carry such
// nodes keep their parameters exactly and pass through.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/work_budget.hpp"
#include "ir/graph.hpp"
#include "quantize/qparams.hpp"
#include "quantize/settings.hpp"
#include "quantize/sqnr.hpp"

namespace carina::quantize {

/// Operator of every source node of a network, as exported: what rules by operator type match beside the
/// decomposed operators.
using SourceOps = std::unordered_map<ir::LocationRef, std::string>;
SourceOps sourceOpsOf(const ir::Graph& graph);

/// The settings of the run, and what departs from them.
struct Options : Settings {
  std::vector<Rule> rules;
  std::optional<BoundarySettings> inputs, outputs;  // program inputs and outputs; absent: like any tensor
  /// Of single inputs and outputs, by index: over what `inputs` and `outputs` say. Float: like any tensor.
  std::map<size_t, Precision> inputPrecisions, outputPrecisions;
  bool equalize = false;       // cross-layer equalisation before anything is observed
  bool rangeMargin = false;    // widen histogram ranges by what other samples may hold
  bool fitWeights = false;     // round weights so that layers keep their results (else to nearest)
  bool correctBiases = false;  // take the mean error of rounded weights off the biases
  /// What choices and loops take and give becomes codes (region_borders.hpp), for NPUs that branch.
  bool codesInRegions = false;
  /// How many of the last inputs are state, whose new contents are as many of the last outputs
  /// (ir/state.hpp): both sides of a variable have one range.
  size_t states = 0;
  size_t compared = 0;  // samples whose float outputs are kept for estimateAccuracy()
  SourceOps sourceOps;
  std::map<std::string, std::string> moduleClasses;  // Python classes by module path, "" for the root
  std::shared_ptr<WorkBudget> loops;  // for turns of loops in float; null: as aten::Executor says
};

/// What became of one tensor. Per-channel tensors give the largest scale and its range.
struct TensorReport {
  std::string name;         // value name in the graph
  std::string modulePath;   // of the node that makes it, "" for inputs
  double min = 0, max = 0;  // the range that was quantized
  double scale = 1;
  int64_t zeroPoint = 0;
  DType dtype = DType::Int8;
  bool perChannel = false;
  bool isConstant = false;
  Sqnr sqnr;                         // against float: constants always, others after measureSqnr()
  int weightBits = kMostWeightBits;  // of a layer's weight
};

struct Report {
  std::vector<TensorReport> tensors;
};

/// What the float network makes of samples, by their index.
using FloatOutputs = std::map<size_t, std::vector<Tensor>>;

struct Quantized {
  ir::Graph graph;
  /// The float graph that was quantized: batch norms folded, layers equalized, every value named. Quantized
  /// values have the same names. Empty when the network came with its quantization.
  std::optional<ir::Graph> reference;
  Report report;
  std::vector<Diagnostic> warnings;
  std::vector<std::string> keptFloat;  // names of source nodes that rules keep in float
  FloatOutputs floatOutputs;           // of Options::compared samples, but for large ones
};

/// Some of the samples, taken evenly: the i-th of `most`.
inline size_t comparedSample(size_t i, size_t most, size_t samples) {
  return i * samples / std::min(most, samples);
}

/// One calibration sample: a tensor per graph input, in order, of the input's type and shape.
using Sample = std::vector<Tensor>;
/// Called after each sample with how many are done and how many there are.
using Progress = std::function<void(size_t done, size_t total)>;

/// Calibration samples for the inputs of `graph` from named arrays: `calibN` with a leading sample axis (or
/// the input's own batch axis of size 1 as sample axis); where absent, `inN` is the one sample. Errors:
/// neither is there, shapes or types differ from the input's, sample counts differ, values that are not
/// finite.
Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays);
/// The same for the first `inputs` inputs alone.
Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays,
                                              size_t inputs);

/// Samples of the caller's inputs as samples of all inputs of a graph with state: the samples are the calls
/// of one sequence, and each gets the state that the ones before it left. Fails on what the executor cannot
/// run.
Result<std::vector<Sample>> withState(const ir::Graph& graph, std::vector<Tensor> initial,
                                      std::span<const Sample> samples, WorkBudget* loops = nullptr);

/// Whether the graph holds quantized_decomposed nodes, that is, whether quantize() will keep it as it is.
bool carriesQuantization(const ir::Graph& graph);

/// Folds batch norms, equalizes, observes the samples through the float executor, corrects biases, and
/// inserts quantize/dequantize nodes. Rules that match nothing or disagree give warnings. Errors: no samples
/// (with the remedy), weights that are not finite, what the executor cannot run.
Result<Quantized> quantize(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                           const Progress& progress = nullptr);

/// Batch norms with fixed statistics into the convolution or linear in front of them (w' = w*s, b' = (b -
/// mean)*s + beta, s = gamma / sqrt(var + eps)); one without such a producer becomes a depthwise 1x1
/// convolution. Products and sums with one constant per channel, or one for all, go into such a producer as
/// well; a product and a sum per channel without one become a depthwise convolution. quantize() calls it; it
/// is exact up to float rounding.
Status foldBatchNorms(ir::Graph& graph);

/// Cross-layer equalisation: between two layers with only positively homogeneous operators in between (ReLU,
/// pooling, ...), channels are rescaled so that the weights of both sides have the same range. The function
/// stays the same up to float rounding. Over the samples no channel grows beyond the largest one; a limit in
/// between (relu6) cuts the same of their values as before. Without samples it ends the search. Returns how
/// many pairs of layers there are.
Result<size_t> equalize(ir::Graph& graph, std::span<const Sample> samples, WorkBudget* loops = nullptr);

/// Runs float and quantized graph side by side and fills in the report's SQNRs of activations.
Status measureSqnr(const Quantized& quantized, std::span<const Sample> samples, Report& report,
                   WorkBudget* loops = nullptr);

}  // namespace carina::quantize
