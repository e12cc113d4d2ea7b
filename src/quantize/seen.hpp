// SPDX-License-Identifier: Apache-2.0
// What one calibration sample shows, until observers look at it.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "quantize/annotate.hpp"
#include "quantize/layer_inputs.hpp"

namespace carina::quantize {

/// Float tensors in the order in which they were added. Those of the many turns of a loop are small: they lie
/// in one array, as each by itself takes several times the memory of its elements.
class TensorSeries {
 public:
  void add(const Tensor& tensor) {
    const std::span<const float> values = tensor.as<float>();
    sizes_.push_back(values.size());
    if (values.size() <= kMostSmall)
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
      if (size > kMostSmall) {
        visit((large++)->as<float>());
      } else {
        visit(small.first(size));
        small = small.subspan(size);
      }
    }
  }

 private:
  static constexpr size_t kMostSmall = 256;  // elements
  std::vector<size_t> sizes_;
  std::vector<float> small_;
  std::vector<Tensor> large_;
};

/// The groups whose observers look at a value.
using GroupsOf = std::unordered_map<const ir::Value*, std::vector<size_t>>;
GroupsOf groupsOf(const Annotation& annotation);

/// Of one sample.
struct Seen {
  std::vector<TensorSeries> groups;  // per group its tensors in program order
  LayerInputs::Values inputs;
  std::vector<Tensor> outputs;  // of the float network

  /// A value of a run: kept where a group or a layer looks at it.
  void add(const GroupsOf& observing, const LayerInputs& layers, const ir::Value& value,
           const Tensor& tensor);
};

}  // namespace carina::quantize
