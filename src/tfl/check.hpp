// SPDX-License-Identifier: Apache-2.0
// Well-formedness checks of tfl nodes, one function per family of operators (ops.json assigns them): operands
// must match, operands that determine shapes must be constant, and results must have the resulting shapes.
// Element types and quantization are checked where the operators are lowered.
#pragma once

#include "ir/op_def.hpp"

namespace carina::tfl::check {

Status argExtreme(const ir::Node& node);
Status batchMatmul(const ir::Node& node);
Status batchToSpace(const ir::Node& node);
Status binary(const ir::Node& node);
Status broadcastTo(const ir::Node& node);
Status cast(const ir::Node& node);
Status compare(const ir::Node& node);
Status concatenation(const ir::Node& node);
Status conv2d(const ir::Node& node);
Status depthToSpace(const ir::Node& node);
Status depthwiseConv2d(const ir::Node& node);
Status fullyConnected(const ir::Node& node);
Status gather(const ir::Node& node);
Status logical(const ir::Node& node);
Status lstm(const ir::Node& node);
Status mirrorPad(const ir::Node& node);
Status pack(const ir::Node& node);
Status pad(const ir::Node& node);
Status pool2d(const ir::Node& node);
Status prelu(const ir::Node& node);
Status quantize(const ir::Node& node);
Status reduce(const ir::Node& node);
Status resize(const ir::Node& node);
Status reverse(const ir::Node& node);
Status sameCount(const ir::Node& node);
Status select(const ir::Node& node);
Status shapeOf(const ir::Node& node);
Status slice(const ir::Node& node);
Status spaceToBatch(const ir::Node& node);
Status spaceToDepth(const ir::Node& node);
Status split(const ir::Node& node);
Status splitV(const ir::Node& node);
Status stridedSlice(const ir::Node& node);
Status tile(const ir::Node& node);
Status transpose(const ir::Node& node);
Status transposeConv(const ir::Node& node);
Status unary(const ir::Node& node);
Status unpack(const ir::Node& node);

}  // namespace carina::tfl::check
