// SPDX-License-Identifier: Apache-2.0
// Post-training quantization: a float aten graph and calibration samples in, the same graph with explicit
// quantized_decomposed quantize/dequantize nodes out (the form PT2E produces). Graphs that already carry such
// nodes keep their parameters exactly and pass through.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/observer.hpp"
#include "quantize/qparams.hpp"

namespace carina::quantize {

enum class Precision : uint8_t {
  Int8,     // int8 affine activations, int8 symmetric weights
  Int16x8,  // int16 symmetric activations, int8 symmetric weights
};

struct Options {
  Precision precision = Precision::Int8;
  bool perChannelWeights = true;
  ObserverKind observer = ObserverKind::Histogram;
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
};

struct Report {
  std::vector<TensorReport> tensors;
};

struct Quantized {
  ir::Graph graph;
  Report report;
};

/// One calibration sample: a tensor per graph input, in order, of the input's type and shape.
using Sample = std::vector<Tensor>;
/// Called after each sample with how many are done and how many there are.
using Progress = std::function<void(size_t done, size_t total)>;

/// Calibration samples for the inputs of `graph` from named arrays: `calibN` with a leading sample axis (or
/// the input's own batch axis of size 1 as sample axis); where absent, `inN` is the one sample. Errors:
/// neither is there, shapes or types differ from the input's, sample counts differ, values that are not
/// finite.
Result<std::vector<Sample>> samplesFromArrays(const ir::Graph& graph, const NamedTensors& arrays);

/// Whether the graph holds quantized_decomposed nodes, that is, whether quantize() will keep it as it is.
bool carriesQuantization(const ir::Graph& graph);

/// Folds batch norms, observes the samples through the float executor, and inserts quantize/dequantize nodes.
/// Errors: no samples (with the remedy), weights that are not finite, what the executor cannot run.
Result<Quantized> quantize(ir::Graph graph, const Options& options, std::span<const Sample> samples,
                           const Progress& progress = nullptr);

/// Batch norms with fixed statistics into the convolution or linear in front of them (w' = w*s, b' = (b -
/// mean)*s + beta, s = gamma / sqrt(var + eps)); one without such a producer becomes a depthwise 1x1
/// convolution. quantize() calls it; it is exact up to float rounding.
Status foldBatchNorms(ir::Graph& graph);

}  // namespace carina::quantize
