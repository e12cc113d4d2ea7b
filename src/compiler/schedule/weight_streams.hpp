// SPDX-License-Identifier: Apache-2.0
// Weight and scale streams of one operation, slice by slice, as stored in the constants.
#pragma once

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "ir/graph.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"
#include "npu/weights/weight_codec.hpp"

namespace carina::compiler {

/// One slice of output channels: its bytes (records and streams, each at a multiple of 16) and where they are
/// in it.
struct EncodedSlice {
  npu::DepthSlice channels;
  std::vector<std::byte> bytes;
  npu::WeightStreams streams;  // addresses relative to the start of bytes
};

/// Whether the weights of a CONV node are 2:4 sparse as Ethos-U85 requires: at most two of four input
/// channels are nonzero, and none is beyond -127..127. Kernels of up to two input channels always satisfy the
/// former.
bool canBeSparse(const ir::Node* node);

/// Encodes weights, biases and scales of a CONV or DEPTHWISE node for the block and traversal chosen in `op`.
Result<EncodedSlice> encodeSlice(const ir::Node* node, const npu::KernelOperation& op,
                                 npu::DepthSlice channels, const npu::Target& target,
                                 npu::CodingEffort effort);

/// Encodes the scales of a CODED_CONV node, whose weights are not constants: the streams of `op` are kept.
Result<EncodedSlice> encodeScales(const ir::Node* node, const npu::KernelOperation& op,
                                  const npu::Target& target);

/// Numbers CONV and DEPTHWISE nodes; those with equal weights, biases, scales and zero points share a number.
class WeightContents {
 public:
  WeightContents() = default;
  explicit WeightContents(const std::vector<const ir::Node*>& nodes);

  int32_t of(const ir::Node* node) const { return numbers_.at(node); }
  /// estimateEncodedBytes() of the node, or the value set by expect().
  int64_t expectedBytes(const ir::Node* node) const { return bytes_[static_cast<size_t>(of(node))]; }
  void expect(const ir::Node* node, int64_t bytes) { bytes_[static_cast<size_t>(of(node))] = bytes; }
  /// The maximum over all nodes, 0 if there are none.
  int64_t largestBytes() const {
    return bytes_.empty() ? 0 : *std::max_element(bytes_.begin(), bytes_.end());
  }
  /// The sum over all nodes, those with equal contents counted once.
  int64_t totalBytes() const { return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}); }

 private:
  std::unordered_map<const ir::Node*, int32_t> numbers_;
  std::vector<int64_t> bytes_;  // by number
};

/// Numbers weights; those with equal streams share a number.
class StreamSets {
 public:
  StreamSets(const npu::Target& target, const WeightContents& contents)
      : target_(target), contents_(contents) {}

  /// The set of a CONV or DEPTHWISE node with the block and traversal of `op`; sets are numbered from 0.
  int32_t indexOf(const ir::Node* node, const npu::KernelOperation& op);

 private:
  struct Member {
    npu::WeightOrder order;
    int32_t set;
  };
  const npu::Target& target_;
  const WeightContents& contents_;
  std::unordered_map<int32_t, std::vector<Member>> members_;  // by contents
  int32_t count_ = 0;
};

/// Expected encoded bytes, estimated from the frequencies of the weights without encoding. Reads all weights.
int64_t estimateEncodedBytes(const ir::Node* node);

}  // namespace carina::compiler
