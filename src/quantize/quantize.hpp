// SPDX-License-Identifier: Apache-2.0
// Post-training quantization: a float aten graph and calibration samples in, the same graph with explicit
// quantized_decomposed quantize/dequantize nodes out (the form PT2E produces). Graphs that already carry such
// nodes keep their parameters exactly and pass through.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
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

/// Operator of every source node of a network, as exported: rules by operator type match these as well as the
/// decomposed operators.
using SourceOps = std::unordered_map<ir::LocationRef, std::string>;
SourceOps sourceOpsOf(const ir::Graph& graph);

/// The settings of the run, and exceptions to them.
struct Options : Settings {
  std::vector<Rule> rules;
  std::optional<BoundarySettings> inputs, outputs;  // program inputs and outputs; absent: like any tensor
  /// For individual inputs and outputs, by index: overrides `inputs` and `outputs`. Float: like any tensor.
  std::map<size_t, Precision> inputPrecisions, outputPrecisions;
  bool equalize = false;       // cross-layer equalisation before anything is observed
  bool rangeMargin = false;    // widen histogram ranges to allow for unseen samples
  bool fitWeights = false;     // round weights to preserve layer results (else to nearest)
  bool correctBiases = false;  // subtract the mean error of rounded weights from the biases
  /// Operands and results of conditionals and loops become codes (region_borders.hpp), for NPUs with
  /// branches.
  bool codesInRegions = false;
  /// The number of trailing inputs that are state; as many trailing outputs are their new contents
  /// (ir/state.hpp). Both sides of a variable share one range.
  size_t states = 0;
  size_t compared = 0;  // samples whose float outputs are kept for estimateAccuracy()
  SourceOps sourceOps;
  std::map<std::string, std::string> moduleClasses;  // Python classes by module path, "" for the root
  std::shared_ptr<WorkBudget> loops;  // for iterations of loops in float; null: aten::Executor's default
};

/// How one tensor was quantized. For per-channel tensors: the largest scale and the range over all channels.
struct TensorReport {
  std::string name;         // value name in the graph
  std::string modulePath;   // of the producer, "" for inputs
  double min = 0, max = 0;  // the range that was quantized
  double scale = 1;
  int64_t zeroPoint = 0;
  DType dtype = DType::Int8;
  bool perChannel = false;
  bool isConstant = false;
  Sqnr sqnr;                        // against float: constants always, others after measureSqnr()
  int weightBits = kMaxWeightBits;  // of a layer's weight
};

struct Report {
  std::vector<TensorReport> tensors;
  std::vector<std::string> fineSums;  // source nodes of sums with 16-bit codes, and of norms (fine_sums.hpp)
  std::vector<std::string> wideLogarithms;  // source nodes with 32-bit codes (wide_logarithms.hpp)
};

/// Outputs of the float network, by sample index.
using FloatOutputs = std::map<size_t, std::vector<Tensor>>;

struct Quantized {
  ir::Graph graph;
  /// The float graph that was quantized: batch norms folded, layers equalized, every value named. Quantized
  /// values have the same names. Empty if the network was prequantized.
  std::optional<ir::Graph> reference;
  Report report;
  std::vector<Diagnostic> warnings;
  std::vector<std::string> keptFloat;  // names of source nodes that rules keep in float
  FloatOutputs floatOutputs;           // of Options::compared samples, except large ones
};

/// The index of the i-th of `most` evenly spaced samples.
inline size_t comparedSample(size_t i, size_t most, size_t samples) {
  return i * samples / std::min(most, samples);
}

/// One calibration sample: a tensor per graph input, in order, of the input's type and shape.
using Sample = std::vector<Tensor>;
/// Called after each batch of samples that run in parallel.
using Progress = std::function<void(size_t done, size_t total)>;

/// Calibration samples for the inputs of `graph` from named arrays: `calibN` with a leading sample axis (or
/// the input's own batch axis of size 1 as sample axis); if absent, `inN` is the only sample. Errors: neither
/// exists, shapes or types differ from the input's, sample counts differ, values are not finite.
Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays);
/// The same for the first `inputs` inputs only.
Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays,
                                              size_t inputs);

/// Extends samples of the caller's inputs to all inputs of a graph with state: the samples are a sequence of
/// calls, and each gets the state that the preceding ones left. Fails if the executor cannot run the graph.
Result<std::vector<Sample>> withState(const ir::Graph& graph, std::vector<Tensor> initial,
                                      std::span<const Sample> samples, WorkBudget* loops = nullptr);

/// Whether the graph holds quantized_decomposed nodes, that is, whether quantize() leaves it unchanged.
bool carriesQuantization(const ir::Graph& graph);

/// Folds batch norms, equalizes, observes the samples through the float executor, corrects biases, and
/// inserts quantize/dequantize nodes. Rules that match nothing or disagree cause warnings. Errors: no samples
/// (with the remedy), weights that are not finite, graphs that the executor cannot run.
Result<Quantized> quantize(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                           const Progress& progress = nullptr);

/// Folds batch norms with fixed statistics into the preceding convolution or linear layer (w' = w*s, b' = (b
/// - mean)*s + beta, s = gamma / sqrt(var + eps)); without such a producer, they become depthwise 1x1
/// convolutions. Products and sums with one constant per channel, or one for all, are folded into such a
/// producer as well; a per-channel product and sum without one become a depthwise convolution. What has no
/// producer is folded into the layers that read it instead, if there are only such layers and the errors of
/// their rounded weights have at most `mostNoise` times the power after that. Called by quantize(); exact up
/// to float rounding.
Status foldBatchNorms(ir::Graph& graph, double mostNoise = std::numeric_limits<double>::infinity());

/// Cross-layer equalisation: between two layers with only positively homogeneous operators in between (ReLU,
/// pooling, ...), channels are rescaled so that the weights of both sides have the same range. The network's
/// function is preserved up to float rounding. Over the samples, no channel grows beyond the largest one, and
/// an upper limit in between (relu6) clips the same values as before; without samples, layers with such a
/// limit in between are not paired. Returns the number of pairs of layers.
Result<size_t> equalize(ir::Graph& graph, std::span<const Sample> samples, WorkBudget* loops = nullptr);

/// Runs the float and the quantized graph side by side and fills in the report's SQNRs of activations.
Status measureSqnr(const Quantized& quantized, std::span<const Sample> samples, Report& report,
                   WorkBudget* loops = nullptr);

}  // namespace carina::quantize
