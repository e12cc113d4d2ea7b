// SPDX-License-Identifier: Apache-2.0
// The order in which the weights of a convolution enter the hardware weight streams (reference: the order of
// weights in a stream for U55/U65, and for U85 with its decoders, serpentine blocks and tap phases). One
// description serves the compiler (tensor to streams) and the model (streams to tensor).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.hpp"
#include "base/result.hpp"
#include "npu/isa/operation.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

/// Traversal of the weight volume. Depthwise is implied by NPU_OP_DEPTHWISE; the other two are
/// KERNEL_STRIDE.weight_order.
enum class WeightTraversal : uint8_t { DepthFirst, PartKernelFirst, Depthwise };

/// Kernel volume of one operation, or of one OFM depth slice of it. Depthwise: ifmDepth is 1 and ofmDepth the
/// channels.
struct WeightShape {
  int32_t ofmDepth = 0;
  int32_t height = 0;  // taps, not dilated
  int32_t width = 0;
  int32_t ifmDepth = 1;

  int64_t elements() const { return int64_t{ofmDepth} * height * width * ifmDepth; }
  bool operator==(const WeightShape&) const = default;
};

/// Everything except the shape that determines the order.
struct WeightOrder {
  bool ethosU85 = false;
  int macs = 256;          // per cycle, all cores; U85 only: padding of depthwise, IFM block depth
  int streams = 1;         // U65-512: 2 cores; U85: 1, 2 or 4 decoders; else 1
  int ofmUblockDepth = 8;  // U55-32: 4, U55/U65: 8, U85: by microblock and MACs
  int ofmBlockDepth = 16;  // NPU_SET_OFM_BLK_DEPTH_M1 + 1, of the whole operation (all cores)
  WeightTraversal traversal = WeightTraversal::DepthFirst;
  int ifmBits = 8;                   // 8, 16 or 32 (U85)
  int strideX = 1, strideY = 1;      // of the operation; matter on U85 only
  int dilationX = 1, dilationY = 1;  // 1 or 2
  int subKernel = 8;                 // 8 or 4: KERNEL_STRIDE.decomposition
  bool sparse = false;               // U85 2:4

  bool operator==(const WeightOrder&) const = default;
};

/// Order of the weights of an operation (or of one that is being planned): traversal, block and microblock
/// depth, IFM type, stride and dilation are taken from it.
WeightOrder weightOrder(const Target& target, const KernelOperation& operation);
/// Kernel volume the operation consumes.
WeightShape weightShape(const KernelOperation& operation);

/// Checks shape and order: sizes from 1 to 2^16, known depths.
Status checkWeightOrder(const WeightShape& shape, const WeightOrder& order);

/// U85: IFM channels of one block. U55/U65: 16 or 32.
int ifmBlockDepth(const WeightOrder& order);
/// Number of streams in use: U65 at most one per channel; U85 all.
int activeStreams(const WeightShape& shape, const WeightOrder& order);
/// Weights (padding zeros included) in stream `stream`.
int64_t streamWeightCount(const WeightShape& shape, const WeightOrder& order, int stream);

/// Weights of a whole operator in any layout: element (o, y, x, i) is data[o*strideO + y*strideY + x*strideX
/// + i*strideI]. Dense OHWI: strideI 1, strideX I, strideY W*I, strideO H*W*I. Depthwise stored as (H,W,C):
/// strideO 1, strideX C, strideY W*C. Strides may be negative (transposed convolution flips the kernel: data
/// points at the last tap).
struct WeightView {
  const void* data = nullptr;
  DType dtype = DType::Int8;  // Int8, UInt8, Int4 (one per byte) or Int16
  WeightShape shape;
  int64_t strideO = 0, strideY = 0, strideX = 0, strideI = 1;  // in elements
  std::span<const int32_t> zeroPoints;  // none: 0; one: per tensor; else one per OFM channel

  /// Dense OHWI.
  static WeightView ohwi(const void* data, DType dtype, const WeightShape& shape,
                         std::span<const int32_t> zeroPoints = {});
  /// Dense (H,W,C) for depthwise (TFLite's 1,H,W,C; TOSA's H,W,C,M).
  static WeightView hwc(const void* data, DType dtype, const WeightShape& shape,
                        std::span<const int32_t> zeroPoints = {});
};

/// OFM channels [offset, offset + depth) of an operator: what one operation computes.
struct DepthSlice {
  int32_t offset = 0;
  int32_t depth = 0;
};

/// The weights of one stream, zero points subtracted, in stream order with padding zeros. Fails if a value is
/// outside -255..255 or the order is invalid for the shape.
Result<std::vector<int16_t>> orderWeights(const WeightView& view, const WeightOrder& order, DepthSlice slice,
                                          int stream);

/// The reverse: places decoded streams (as many as activeStreams, each streamWeightCount long or longer) into
/// a dense OHWI volume of the slice, depthwise as (H,W,C). Padding weights are ignored.
Result<std::vector<int16_t>> restoreWeights(std::span<const std::vector<int16_t>> streams,
                                            const WeightShape& shape, const WeightOrder& order);

/// Checks that the ordered streams are legal 2:4 sparse weights: at least two zeros in each group of four and
/// |w| <= 127.
Status checkSparseWeights(const WeightView& view, const WeightOrder& order, DepthSlice slice);

}  // namespace carina::npu
