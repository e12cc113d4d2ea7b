// SPDX-License-Identifier: Apache-2.0
// Convolutions of floats: windows are gathered into rows of a matrix, which oneDNN multiplies, block by block
// in parallel. Sums are float32, like the operators' accumulators (FP16 accumulators may be wider).
#pragma once

#include "tosa/kernels/conv_geometry.hpp"

namespace carina::tosa::kernels {

/// CONV2D, CONV3D. Input [N, (D,) H, W, C], weight [OC, (KD,) KH, KW, C] of any floating point type; returns
/// the sums as float32 [N, (D,) H, W, OC].
Result<Tensor> denseFloats(const ir::Node& node, const Geometry& g, const Tensor& input,
                           const Tensor& weight);
/// DEPTHWISE_CONV2D. Weight [KH, KW, C, M].
Tensor depthwiseFloats(const ir::Node& node, const Geometry& g, const Tensor& input, const Tensor& weight);
/// TRANSPOSE_CONV2D. Weight [OC, KH, KW, C].
Result<Tensor> transposedFloats(const ir::Node& node, const Geometry& g, const Tensor& input,
                                const Tensor& weight);

}  // namespace carina::tosa::kernels
