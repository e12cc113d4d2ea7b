// SPDX-License-Identifier: Apache-2.0
// Sums that layer_norm and rms_norm read. A norm makes all rows equally large, and with them their rounding
// errors: a class token of magnitude 0.02 next to image patches of up to 2.6 has one or two of their int8
// codes, and the error is as large as any value after the norm. In a deep residual stream, the errors of many
// sums add up as well.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
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

/// The operators that need 16-bit codes: sums in int8, concatenations and movements of data among them, and
/// the norms that read their results. None if the results of the network, with only these values rounded,
/// have at least 20 dB, or if the other values alone leave less than 20 dB or so little that the network
/// would gain less than 6 dB; otherwise those with the largest errors after the norm, so many that the others
/// leave 25 dB. Without operators that rules name. `known`: results of the float network. Errors: graphs that
/// the executor cannot run.
Result<std::vector<const ir::Node*>> operatorsOfFineSums(const ir::Graph& graph, const NormRowsOf& inputs,
                                                         const Assignment& assignment,
                                                         const Annotation& annotation,
                                                         const std::vector<QParams>& params,
                                                         std::span<const Sample> samples,
                                                         const FloatOutputs& known, WorkBudget* loops);

}  // namespace carina::quantize
