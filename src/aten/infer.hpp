// SPDX-License-Identifier: Apache-2.0
// Inference of the result types of the aten operators from their operands and attributes, one function per
// family of operators (operators/*.json assigns them to operators). They follow PyTorch's rules for
// broadcasting, element type promotion and output sizes, and fail with a description of what is wrong with
// the operands.
#pragma once

#include <vector>

#include "ir/op_def.hpp"

namespace carina::aten::infer {

using Types = Result<std::vector<ir::Type>>;

/// The type of an operator's only result. Fails if the result has too many elements to count.
Types oneResult(DType dtype, Shape shape);
/// The error that the operands' shapes do not match.
Error mismatch(const ir::Node& node);

Types adaptiveAvgPool(const ir::Node& node);
Types adaptiveMaxPool(const ir::Node& node);
Types addmm(const ir::Node& node);
Types addmv(const ir::Node& node);
Types anyAll(const ir::Node& node);
Types arange(const ir::Node& node);
Types argExtreme(const ir::Node& node);
Types argsort(const ir::Node& node);
Types attention(const ir::Node& node);
Types avgPool(const ir::Node& node);
Types batchNorm(const ir::Node& node);
Types batchStatistics(const ir::Node& node);
Types binary(const ir::Node& node);
Types binaryFloat(const ir::Node& node);
Types bothExtremes(const ir::Node& node);
Types cast(const ir::Node& node);
Types castAs(const ir::Node& node);
Types cat(const ir::Node& node);
Types chooseQparams(const ir::Node& node);
Types compare(const ir::Node& node);
Types conv(const ir::Node& node);
Types convTranspose(const ir::Node& node);
Types convertElementType(const ir::Node& node);
Types convolution(const ir::Node& node);
Types copy(const ir::Node& node);
Types countNonzero(const ir::Node& node);
Types cumulative(const ir::Node& node);
Types cumulativeExtreme(const ir::Node& node);
Types dequantize(const ir::Node& node);
Types distances(const ir::Node& node);
Types divMode(const ir::Node& node);
Types dot(const ir::Node& node);
Types einsum(const ir::Node& node);
Types embedding(const ir::Node& node);
Types extreme(const ir::Node& node);
Types foldWindows(const ir::Node& node);
Types full(const ir::Node& node);
Types fullLike(const ir::Node& node);
Types gather(const ir::Node& node);
Types glu(const ir::Node& node);
Types gridSampler(const ir::Node& node);
Types inPlace(const ir::Node& node);
Types index(const ir::Node& node);
Types indexPut(const ir::Node& node);
Types indexSelect(const ir::Node& node);
Types joinStack(const ir::Node& node);
Types layerNorm(const ir::Node& node);
Types linear(const ir::Node& node);
Types linspace(const ir::Node& node);
Types lstm(const ir::Node& node);
Types lstmCell(const ir::Node& node);
Types maskedFill(const ir::Node& node);
Types matmul(const ir::Node& node);
Types maxPool(const ir::Node& node);
Types maxPoolIndices(const ir::Node& node);
Types mm(const ir::Node& node);
Types movement(const ir::Node& node);
Types mv(const ir::Node& node);
Types nativeBatchNorm(const ir::Node& node);
Types nativeDropout(const ir::Node& node);
Types nativeGroupNorm(const ir::Node& node);
Types nativeLayerNorm(const ir::Node& node);
Types newFull(const ir::Node& node);
Types noResult(const ir::Node& node);
Types oneHot(const ir::Node& node);
Types orderStatistic(const ir::Node& node);
Types outer(const ir::Node& node);
Types pad(const ir::Node& node);
Types pairDistances(const ir::Node& node);
Types pointwiseSeveral(const ir::Node& node);
Types prelu(const ir::Node& node);
Types quantize(const ir::Node& node);
Types reduceSame(const ir::Node& node);
Types roll(const ir::Node& node);
Types rnn(const ir::Node& node);
Types rnnCell(const ir::Node& node);
Types scatter(const ir::Node& node);
Types search(const ir::Node& node);
Types similarity(const ir::Node& node);
Types sliceScatter(const ir::Node& node);
Types softmax(const ir::Node& node);
Types sort(const ir::Node& node);
Types stack(const ir::Node& node);
Types sum(const ir::Node& node);
Types take(const ir::Node& node);
Types topk(const ir::Node& node);
Types trace(const ir::Node& node);
Types triangle(const ir::Node& node);
Types unaryBool(const ir::Node& node);
Types unaryFloat(const ir::Node& node);
Types unarySame(const ir::Node& node);
Types unfoldWindows(const ir::Node& node);
Types upsample(const ir::Node& node);
Types varMean(const ir::Node& node);
Types where(const ir::Node& node);

}  // namespace carina::aten::infer
