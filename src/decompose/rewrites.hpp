// SPDX-License-Identifier: Apache-2.0
// Families of decompositions. Each rewrite returns the value that replaces its node, computed by smaller
// operators, or null to keep the node.
#pragma once

#include "ir/op_view.hpp"
#include "ir/pass.hpp"

namespace carina::decompose {

void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites);  // products with constants become linear
void addEinsumRewrites(std::vector<ir::Rewrite>& rewrites);  // einsum as matrix products
void addNormRewrites(std::vector<ir::Rewrite>& rewrites);  // softmax, layer/group/instance/RMS norm, variance
void addWrittenNormRewrites(std::vector<ir::Rewrite>& rewrites);  // x / |x| and others as norms
void addAttentionRewrites(std::vector<ir::Rewrite>& rewrites);    // scaled_dot_product_attention
void addPointwiseRewrites(std::vector<ir::Rewrite>& rewrites);    // division, glu, masked_fill, prelu, ...
void addTypeRewrites(
    std::vector<ir::Rewrite>& rewrites);  // operands of different types, integers and numbers
void addWindowRewrites(
    std::vector<ir::Rewrite>& rewrites);  // unfold, im2col, col2im, as_strided, circular padding
void addPoolRewrites(std::vector<ir::Rewrite>& rewrites);          // pooling of volumes, adaptive pooling
void addResizeRewrites(std::vector<ir::Rewrite>& rewrites);        // lines and volumes, cubic, selected rows
void addGridRewrites(std::vector<ir::Rewrite>& rewrites);          // sampling at known positions
void addWholeNumberRewrites(std::vector<ir::Rewrite>& rewrites);   // indices computed in float
void addComputedGridRewrites(std::vector<ir::Rewrite>& rewrites);  // for NPUs that gather
void addIndexRewrites(std::vector<ir::Rewrite>& rewrites);         // several indices, index_copy, index_add
void addTransposedRewrites(std::vector<ir::Rewrite>& rewrites);  // transposed convolution in three dimensions
void addScatterRewrites(std::vector<ir::Rewrite>& rewrites);     // scatter, scatter_reduce, masked_scatter
void addScanRewrites(std::vector<ir::Rewrite>& rewrites);        // running products, counts, distances
void addOrderRewrites(std::vector<ir::Rewrite>& rewrites);       // medians, as the last of the k smallest
void addExtremeRewrites(std::vector<ir::Rewrite>& rewrites);     // the first few of an order, by extremes
void addFunctionRewrites(
    std::vector<ir::Rewrite>& rewrites);                    // hypot, logaddexp, lerp, round to decimals, ...
void addLogicRewrites(std::vector<ir::Rewrite>& rewrites);  // logic of numbers, arithmetic of bools, integers
void addRankRewrites(std::vector<ir::Rewrite>& rewrites);   // dimensions beyond TOSA's six
void addRecurrentRewrites(std::vector<ir::Rewrite>& rewrites);  // lstm, gru, rnn and their cells

/// Removes an operator that returns its operand unchanged.
Result<bool> removeIdentity(ir::Node* node);
/// Removes checks of properties that export fixed.
void eraseAssertions(ir::Graph& graph);
/// Folding of nodes that depend only on constants, by a single run of the float executor. Dequantized weights
/// stay nodes for lowering (No), or become float constants for CPU kernels (Yes).
enum class FoldQuantization : uint8_t { No, Yes };
Status foldConstants(ir::Graph& graph, FoldQuantization quantization);

/// Converts float16 operands that are mixed with other types to the common type.
Result<bool> rewriteHalves(ir::Node* node);

/// Sums and products of floats with an integer result type: the floats are converted first, like in PyTorch.
Result<bool> rewriteReducedType(ir::Node* node);

/// aten.to and similar operators: the same values in another type.
bool isConversion(const ir::Node& node);
/// A value without the operators that only change its shape.
ir::Value* unshaped(ir::Value* value);
/// Replaces the node's first result by `value` and erases the node.
void replaceNode(ir::Node* node, ir::Value* value);

/// A rewrite from a function that returns the replacement of a node, or of an operator of one kind; null
/// keeps it.
template <typename Made, typename Subject>
ir::Rewrite rewriteBy(Made (*form)(ir::Builder&, Subject)) {
  return [form](ir::Node* node) -> Result<bool> {
    if constexpr (!std::is_same_v<Subject, ir::Node*>) {
      if (!ir::isa<Subject>(node)) return false;
    }
    ir::Builder b = ir::Builder::beforeNode(node);
    CARINA_TRY(ir::Value* const value, Result<ir::Value*>(form(b, Subject(node))));
    if (value) replaceNode(node, value);
    return value != nullptr;
  };
}
/// A rewrite that changes the graph in another way.
inline ir::Rewrite rewriteBy(Result<bool> (*rewrite)(ir::Node*)) {
  return rewrite;
}
template <typename... Forms>
void addRewrites(std::vector<ir::Rewrite>& rewrites, Forms... forms) {
  (rewrites.push_back(rewriteBy(forms)), ...);
}

/// The same elements in another shape.
ir::Value* viewed(ir::Builder& builder, ir::Value* x, const Shape& shape);
/// The indices along a dimension of `x`, as an int64 constant of its rank.
ir::Value* placesAlong(ir::Builder& builder, const ir::Value* x, int64_t dim);
/// A float32 constant of one element and rank `rank`.
ir::Value* number(ir::Builder& builder, double value, int64_t rank);
/// Whether an operand is the direct result of a dequantize node and the operator has a form in TOSA: the
/// network was quantized with this operator as a unit, so its decomposition would have no quantization.
bool isQuantizedAsUnit(const ir::Node& node);
inline bool isQuantizedAsUnit(const ir::OpView& op) {
  return isQuantizedAsUnit(*op.node());
}

/// Nearest resizing (upsample_nearest*, _upsample_nearest_exact*) as rows selected by constant indices.
Result<ir::Value*> pickedNearestRows(ir::Builder& b, ir::Node* node);

/// A sampler of planes or volumes at computed positions, as gathers of the elements that each position reads;
/// null for cubic interpolation.
Result<ir::Value*> sampleByGathers(ir::Builder& b, ir::Node* node);

/// The operand of an operator that repeats it along dimensions of size 1, null for other values.
ir::Value* expandedFrom(const ir::Value* value);

/// Softmax over one dimension, in the max-subtracting form exp(x - max) / sum. Scores that a mask hides
/// become exactly 0, as do rows in which all are hidden; they do not widen any range.
ir::Value* softmaxOf(ir::Builder& builder, ir::Value* input, int64_t dim);

}  // namespace carina::decompose
