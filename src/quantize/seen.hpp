// SPDX-License-Identifier: Apache-2.0
// The values of one calibration sample, kept until they are observed.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/fine_sums.hpp"
#include "quantize/layer_inputs.hpp"
#include "quantize/observer.hpp"

namespace carina::quantize {

/// Float tensors in the order in which they were added. Those of the many iterations of a loop are small and
/// share one array: separate tensors would take several times the memory of their elements.
class TensorSeries {
 public:
  void add(const Tensor& tensor) {
    const std::span<const float> values = tensor.as<float>();
    sizes_.push_back(values.size());
    if (values.size() <= kMaxSmall)
      small_.insert(small_.end(), values.begin(), values.end());
    else
      large_.push_back(tensor);
  }

  /// Calls `visit(std::span<const float>)` for each tensor.
  template <typename Visit>
  void forEach(Visit&& visit) const {
    std::span<const float> small = small_;
    auto large = large_.begin();
    for (const size_t size : sizes_) {
      if (size > kMaxSmall) {
        visit((large++)->as<float>());
      } else {
        visit(small.first(size));
        small = small.subspan(size);
      }
    }
  }

 private:
  static constexpr size_t kMaxSmall = 256;  // elements
  std::vector<size_t> sizes_;
  std::vector<float> small_;
  std::vector<Tensor> large_;
};

/// The groups that observe a value.
using GroupsOf = std::unordered_map<const ir::Value*, std::vector<size_t>>;
GroupsOf groupsOf(const Annotation& annotation);

/// Ranges of values.
using RangesOf = std::unordered_map<const ir::Value*, Range>;

/// Of one sample.
struct Seen {
  std::vector<TensorSeries> groups;  // per group its tensors in program order
  LayerInputs::Values inputs;
  std::vector<Tensor> outputs;  // of the float network
  RangesOf ranges;              // of single values, where they are wanted
  NormRowsOf rows;              // of the values that are its keys

  /// Keeps a value of a run if a group or a layer needs it, and the powers of the rows that norms read.
  void add(const GroupsOf& observing, const LayerInputs& layers, const ir::Value& value,
           const Tensor& tensor);
};

}  // namespace carina::quantize
