// SPDX-License-Identifier: Apache-2.0
// Rows that layer_norm and rms_norm magnify. A class token of magnitude 0.02 next to image patches of up to
// 2.6 has one or two of their int8 codes; after the norm, its rounding error is as large as any value.
#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/qparams.hpp"
#include "quantize/quantize.hpp"

namespace carina::quantize {

/// The rows that a norm reads.
struct NormRows {
  size_t length = 0;     // elements per row
  bool centred = false;  // the norm subtracts the mean of each row
  double eps = 0;
  /// The mean square of each row, without its mean if that is subtracted: the largest over all samples. A row
  /// that is faint in some samples only depends on what they show, and so do the others.
  std::vector<float> power;

  void add(std::span<const float> values);
  void add(const NormRows& sample);
};
using NormRowsOf = std::unordered_map<const ir::Value*, NormRows>;

/// The values that norms in int8 read, without the powers of their rows.
NormRowsOf normInputs(const ir::Graph& graph, const Assignment& assignment);

/// Sums, movements of data and norms in int8 that would serve faint rows better with 16-bit codes.
struct FaintRows {
  std::vector<const ir::Node*> operators;
  std::vector<std::pair<const ir::Value*, QParams>> codes;  // of the values that norms magnify
};

/// The norms that magnify the rounding error of some row to more than a tenth of its result (20 dB), and the
/// sums and movements before them whose own codes cause such an error. Without operators that rules name.
FaintRows faintRowsOf(const NormRowsOf& inputs, const Assignment& assignment, const Annotation& annotation,
                      const std::vector<QParams>& params);

/// Whether the results of the network suffer from these codes: with nothing else rounded, some result is less
/// than 25 dB. A row may be faint and not matter. `known`: results of the float network. Errors: graphs that
/// the executor cannot run.
Result<bool> doFaintRowsMatter(const FaintRows& rows, const ir::Graph& graph, std::span<const Sample> samples,
                               const FloatOutputs& known, WorkBudget* loops);

}  // namespace carina::quantize
