// SPDX-License-Identifier: Apache-2.0
// Encoded weights of other programs: weights in common can be stored once if all programs read them in the
// same order.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/schedule/schedule.hpp"
#include "npu/weights/weight_codec.hpp"

namespace carina::compiler {

/// How a program holds weights.
struct WeightForm {
  npu::WeightOrder order;
  int32_t sliceDepth = 0;  // output channels of a slice

  bool operator==(const WeightForm&) const = default;
};

/// Forms by weights: their codes, zero points and shape. Biases and scales do not count; programs that share
/// weights have their own.
class KnownWeights {
 public:
  bool empty() const { return forms_.empty(); }
  /// The largest arena of the programs.
  int64_t arenaBytes() const { return arenaBytes_; }

  /// Forms of the weights of a CONV or DEPTHWISE node, none if no program has them.
  std::span<const WeightForm> formsOf(const ir::Node* node) const;

  /// Adds the weights of a finished schedule.
  void add(Schedule& schedule);

  /// Whether other programs hold all encoded slices of a schedule unchanged, records included.
  bool holdAll(Schedule& schedule) const;

 private:
  std::unordered_map<uint64_t, std::vector<WeightForm>> forms_;
  std::unordered_set<uint64_t> slices_;  // hashes of their bytes
  int64_t arenaBytes_ = 0;
};

}  // namespace carina::compiler
