// SPDX-License-Identifier: Apache-2.0
// Samples with one class each, and how many of them a network classifies correctly.
#pragma once

#include <filesystem>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/quantize.hpp"

namespace carina::precision {

class Labelled {
 public:
  /// Reads data like 'carina evaluate', for the inputs of `network`. Errors: no labels, labels that are not
  /// classes of the first output, too much data.
  static Result<Labelled> open(const std::filesystem::path& data, const ir::Graph& network);

  /// Percentage of the samples for which the label's element is the largest of the first output.
  Result<double> top1(const ir::Graph& network) const;
  size_t size() const { return samples_.size(); }

 private:
  std::vector<quantize::Sample> samples_;
  std::vector<Tensor> labels_;
};

}  // namespace carina::precision
