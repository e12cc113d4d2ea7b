// SPDX-License-Identifier: Apache-2.0
// Statistics of layer inputs in the float network that fitted rounding and bias correction need, gathered
// while calibration runs the samples.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/layer_geometry.hpp"

namespace carina::quantize {

/// Columns of one group whose covariance is known.
struct ColumnBlock {
  int64_t group = 0, first = 0;
  size_t columns = 0;
  std::vector<float> gram;   // sums of products over the rows, lower triangle
  std::vector<double> sums;  // over the rows
};

class LayerInputs {
 public:
  struct Wanted {
    bool covariances = false, means = false;
  };
  struct Layer {
    WeightedOp op;
    LayerGeometry geometry;
    size_t weight = 0;         // of weights()
    std::vector<float> means;  // [column, sample] over all groups, if wanted
    bool fits = true;          // weights and bias may be fitted to the inputs
  };
  /// The layers that use a weight in one way: an unrolled recurrent layer has one per step. A convolution and
  /// a transposed one of the same weight have different columns and outputs, and so have other groups.
  struct Weight {
    std::vector<size_t> layers;
    std::vector<ColumnBlock> blocks;  // empty: not wanted, too few rows, or a transposed layer
    size_t rows = 0;                  // seen by every block, over all layers and samples
    size_t rowsPerLayer = 0;          // used from one sample, at most
  };
  /// In a loop, one tensor per iteration.
  using Values = std::unordered_map<const ir::Value*, std::vector<Tensor>>;

  /// Covers the layers whose inputs are quantized. `samples`: how many will be added.
  LayerInputs(const ir::Graph& graph, const Annotation& annotation, Wanted wanted, size_t samples);

  /// Whether add() needs the value.
  bool wants(const ir::Value& value) const { return wanted_.count(&value) != 0; }
  /// Adds the values of one sample. Call it in sample order, so that sums of floats are reproducible.
  void add(size_t sample, const Values& values);

  /// Leaves out layers whose small results matter as much as the large ones: fitted to the inputs, these
  /// decide, and a corrected bias is the same for all.
  void leaveAsRounded(std::span<const ir::Node* const> layers);

  size_t samples() const { return samples_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<Weight>& weights() const { return weights_; }

 private:
  size_t samples_;
  bool means_;
  std::vector<bool> isLookedAt_;  // per sample: for covariances
  std::vector<Layer> layers_;
  std::vector<Weight> weights_;
  std::unordered_set<const ir::Value*> wanted_;
};

}  // namespace carina::quantize
