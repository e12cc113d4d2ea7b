// SPDX-License-Identifier: Apache-2.0
// Weight streams that operations write (CODED_CONV). Ethos-U55 and U65 only read the weights of a
// convolution from an encoded stream. A stream in which every weight takes nine raw bits has a length and an
// order that do not depend on the weights, so that earlier operations can compute it byte by byte. Such a
// stream is two slices without zero runs and palette (ethosu-weights 3.2 to 3.4):
//   bit 0    header: raw, 9 bits, 8 weights       36 bits
//   bit 36   the first group of 8 weights         72 bits
//   bit 108  header: raw, 9 bits, all others      36 bits
//   bit 144  the other groups, 9 whole bytes each, then 0xff up to a multiple of 16 bytes (end of stream)
// The first slice makes the groups of the second start at byte boundaries.
#pragma once

#include <array>

#include "compiler/dialect/npu_ir.hpp"

namespace carina::npu_ir {

constexpr int64_t kCodeBits = 9, kGroupWeights = 8;
/// Bit at which the first group starts, and byte at which the second one does.
constexpr int64_t kFirstGroupBit = 36, kSecondGroupByte = 18;
/// Limit on the weights of a stream: those that the header of a slice can count, and those of the first
/// slice.
constexpr int64_t kMaxCodedWeights = 32767 + kGroupWeights;

/// The order of the weights of a 1x1 convolution (ethosu-weights 2.2, depth first).
struct CodedOrder {
  int64_t streams = 1;      // U65-512: 2, for even and odd output channels
  int64_t blockDepth = 64;  // of the OFM, all streams together
  int64_t ublockDepth = 8, ifmBlock = 32;

  /// Output channels of a stream, and of one of its blocks.
  int64_t channels(int64_t depth, int64_t stream) const;
  int64_t blockChannels(int64_t stream) const;
  /// Groups of 8 weights in a stream. `ofmDepth` and `ifmDepth`: those of the convolution.
  int64_t groups(int64_t ofmDepth, int64_t ifmDepth, int64_t stream) const;
  /// Bytes of a stream, and of all streams one after another.
  int64_t streamBytes(int64_t ofmDepth, int64_t ifmDepth, int64_t stream) const;
  int64_t bytes(int64_t ofmDepth, int64_t ifmDepth) const;
};
CodedOrder codedOrder(const ir::Node* codedConv);

/// The first kSecondGroupByte bytes of a stream, with all weights of the first group zero.
std::array<uint8_t, kSecondGroupByte> codedHeaders(int64_t groups);

/// result[h,w,n] of [H,W,N]: sum over k of (ifm[h,w,k] - ifmZeroPoint) * weight[n][k], with the weights in
/// the streams `codes`, bytes of type int8 or uint8.
ir::Value* createCodedConv(ir::Builder& builder, ir::Value* ifm, ir::Value* codes, int64_t channels,
                           int64_t ifmZeroPoint, const CodedOrder& order, const OutputStage& stage,
                           DType type);

}  // namespace carina::npu_ir
