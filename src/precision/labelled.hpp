// SPDX-License-Identifier: Apache-2.0
// Samples with a class each, and how many of them a network gets right.
#pragma once

#include <filesystem>
#include <vector>

#include "ir/graph.hpp"
#include "quantize/quantize.hpp"

namespace carina::precision {

class Labelled {
 public:
  /// Of data as 'carina evaluate' takes it, for the inputs of `network`. Errors: no labels, labels that are
  /// no classes of the first output.
  static Result<Labelled> open(const std::filesystem::path& data, const ir::Graph& network);

  /// Percent of the samples whose largest element of the first output is the label's.
  Result<double> top1(const ir::Graph& network) const;
  size_t size() const { return samples_.size(); }

 private:
  std::vector<quantize::Sample> samples_;
  std::vector<Tensor> labels_;
};

}  // namespace carina::precision
