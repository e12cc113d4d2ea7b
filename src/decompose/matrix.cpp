// SPDX-License-Identifier: Apache-2.0
// Products with a constant matrix become linear, whose weight is quantized per output channel and encoded for
// the NPU; products of vectors, sums of products, and layers with computed weights become matrix products.
#include <algorithm>

#include "aten/conv_op.hpp"
#include "aten/ops.hpp"
#include "decompose/rewrites.hpp"

namespace carina::decompose {
namespace {

// Computed kernels with more taps stay convolutions, for the CPU.
constexpr int64_t kMaxTaps = 256;

bool isMatrix(const ir::Value* value) {
  return value->isConstant() && value->rank() == 2 && value->dtype() == DType::Float32;
}

ir::Value* transposedMatrix(ir::Builder& b, ir::Value* matrix) {
  return aten::Permute::create(b, matrix, ir::Ints{1, 0});
}

/// x [n, k] (any leading dimensions) times constant [k, m].
template <typename Op>
ir::Value* rewriteProduct(ir::Builder& b, Op op) {
  if (!isMatrix(op->operands()[1]) || op->operands()[0]->isConstant() || op->operands()[0]->rank() < 2)
    return nullptr;
  ir::Value* weight = transposedMatrix(b, op->operands()[1]);
  return aten::Linear::create(b, op->operands()[0], weight, nullptr);
}

/// alpha * product + beta * self
ir::Value* scaledSum(ir::Builder& b, ir::Value* product, double alpha, ir::Value* self, double beta) {
  if (alpha != 1) product = aten::MulScalar::create(b, product, alpha);
  if (beta == 0) return product;
  if (beta != 1) self = aten::MulScalar::create(b, self, beta);
  return aten::AddTensor::create(b, product, self);
}

/// beta * bias + alpha * (x weight^T)
ir::Value* rewriteAddmm(ir::Builder& b, aten::Addmm op) {
  const double beta = ir::scalarReal(op.beta()), alpha = ir::scalarReal(op.alpha());
  const bool plain = beta == 1 && alpha == 1;
  const bool isBias = op.self()->isConstant() && op.self()->numElements() == op.mat2()->dim(1) &&
                      op.self()->dtype() == DType::Float32;
  if (plain && isBias && isMatrix(op.mat2()) && !op.mat1()->isConstant()) {
    ir::Value* bias = aten::View::create(b, op.self(), ir::Ints{op.mat2()->dim(1)});
    return aten::Linear::create(b, op.mat1(), transposedMatrix(b, op.mat2()), bias);
  }
  if (isQuantizedAsUnit(op)) return nullptr;
  ir::Value* product = aten::Mm::create(b, op.mat1(), op.mat2());
  return scaledSum(b, product, alpha, op.self(), beta);
}

ir::Value* rewriteBaddbmm(ir::Builder& b, aten::Baddbmm op) {
  if (isQuantizedAsUnit(op)) return nullptr;
  ir::Value* product = aten::Bmm::create(b, op.batch1(), op.batch2());
  return scaledSum(b, product, ir::scalarReal(op.alpha()), op.self(), ir::scalarReal(op.beta()));
}

/// Products with vectors: of matrices with one row or column, or element by element.
ir::Value* rewriteVectors(ir::Builder& b, ir::Node* node) {
  if (!aten::isOperator(node) || node->operands().empty() || node->results().size() != 1 ||
      isQuantizedAsUnit(*node))
    return nullptr;
  const auto column = [&](ir::Value* v) {
    return aten::Reshape::create(b, v, ir::Ints{v->numElements(), 1});
  };
  const auto row = [&](ir::Value* v) { return aten::Reshape::create(b, v, ir::Ints{1, v->numElements()}); };
  const auto timesVector = [&](ir::Value* matrix, ir::Value* vector) {
    ir::Value* product = aten::Mm::create(b, matrix, column(vector));
    return aten::View::create(b, product, ir::Ints{matrix->dim(0)});
  };
  ir::Value* result = nullptr;
  if (const auto dot = ir::dynCast<aten::Dot>(node)) {
    result = aten::Mm::create(b, row(dot.self()), column(dot.tensor()));
    result = aten::View::create(b, result, ir::Ints{});
  } else if (const auto mv = ir::dynCast<aten::Mv>(node)) {
    result = timesVector(mv.self(), mv.vec());
  } else if (const auto outer = ir::dynCast<aten::Outer>(node)) {
    result = aten::MulTensor::create(b, column(outer.self()), outer.vec2());
  } else if (const auto addmv = ir::dynCast<aten::Addmv>(node)) {
    result = scaledSum(b, timesVector(addmv.mat(), addmv.vec()), ir::scalarReal(addmv.alpha()), addmv.self(),
                       ir::scalarReal(addmv.beta()));
  } else if (const auto addr = ir::dynCast<aten::Addr>(node)) {
    ir::Value* product = aten::MulTensor::create(b, column(addr.vec1()), addr.vec2());
    result = scaledSum(b, product, ir::scalarReal(addr.alpha()), addr.self(), ir::scalarReal(addr.beta()));
  } else {
    return nullptr;
  }
  return result;
}

/// The sum of the products of a batch is a single product of the concatenated matrices.
ir::Value* rewriteAddbmm(ir::Builder& b, aten::Addbmm op) {
  if (isQuantizedAsUnit(op)) return nullptr;
  const int64_t batches = op.batch1()->dim(0), rows = op.batch1()->dim(1), inner = op.batch1()->dim(2);
  ir::Value* left = aten::Permute::create(b, op.batch1(), ir::Ints{1, 0, 2});
  left = aten::Reshape::create(b, left, ir::Ints{rows, batches * inner});
  ir::Value* right = aten::Reshape::create(b, op.batch2(), ir::Ints{batches * inner, op.batch2()->dim(2)});
  ir::Value* product = aten::Mm::create(b, left, right);
  return scaledSum(b, product, ir::scalarReal(op.alpha()), op.self(), ir::scalarReal(op.beta()));
}

/// Whether folding turns the value into a constant.
bool becomesConstant(const ir::Value* value) {
  if (value->isConstant()) return true;
  const ir::Node* node = value->producer();
  return node && std::all_of(node->operands().begin(), node->operands().end(),
                             [](const ir::Value* operand) { return !operand || becomesConstant(operand); });
}

/// A linear layer whose weights are computed from inputs is a matrix product.
ir::Value* rewriteComputedLinear(ir::Builder& b, aten::Linear op) {
  if (becomesConstant(op.weight()) || op.weight()->rank() != 2 || op.input()->rank() < 2 ||
      isQuantizedAsUnit(op))
    return nullptr;
  ir::Value* result = aten::Matmul::create(b, op.input(), transposedMatrix(b, op.weight()));
  if (op.bias()) result = aten::AddTensor::create(b, result, op.bias());
  return result;
}

/// A convolution whose kernel is computed (dynamic and modulated convolutions, correlation with a template)
/// is a product per group: kernels [Cout / groups, Cin / groups * kh * kw] times windows of the image
/// [Cin / groups * kh * kw, positions].
ir::Value* rewriteComputedKernel(ir::Builder& b, ir::Node* node) {
  const auto conv = aten::asConvolution(node);
  if (!conv || conv->transposed || conv->spatialRank() > 2 || becomesConstant(conv->weight) ||
      isQuantizedAsUnit(*node) || conv->input->dtype() != DType::Float32 ||
      node->result()->numElements() == 0)
    return nullptr;
  const bool isLine = conv->spatialRank() == 1;
  // A line is an image of one row.
  const auto both = [&](ir::Ints dims, int64_t first) {
    if (isLine) dims.insert(dims.begin(), first);
    return dims;
  };
  const Shape &weight = conv->weight->shape(), &input = conv->input->shape();
  const int64_t batch = input.size() == weight.size() ? input[0] : 1;
  const int64_t perGroup = weight[0] / conv->groups;
  const ir::Ints kernel = both({weight.begin() + 2, weight.end()}, 1);
  const int64_t inside = weight[1] * kernel[0] * kernel[1];
  const int64_t positions = node->result()->numElements() / (batch * weight[0]);
  if (kernel[0] * kernel[1] > kMaxTaps) return nullptr;

  const int64_t rows = isLine ? 1 : input[input.size() - 2];
  ir::Value* image =
      aten::View::create(b, conv->input, ir::Ints{batch, conv->inputChannels(), rows, input.back()});
  const ir::Ints before = both(conv->padBefore, 0), after = both(conv->padAfter, 0);
  if (before != ir::Ints{0, 0} || after != ir::Ints{0, 0}) {
    image = aten::ConstantPadNd::create(b, image, ir::Ints{before[1], after[1], before[0], after[0]}, 0.0);
  }
  ir::Value* windows =
      aten::Im2col::create(b, image, kernel, both(conv->dilation, 1), ir::Ints{0, 0}, both(conv->stride, 1));
  windows = aten::View::create(b, windows, ir::Ints{batch, conv->groups, inside, positions});
  ir::Value* kernels = aten::View::create(b, conv->weight, ir::Ints{1, conv->groups, perGroup, inside});
  ir::Value* sums = aten::Matmul::create(b, kernels, windows);
  sums = aten::View::create(b, sums, node->result()->shape());
  if (conv->bias) {
    ir::Ints perChannel(weight.size() - 1, 1);
    perChannel[0] = weight[0];
    ir::Value* bias = aten::View::create(b, conv->bias, perChannel);
    sums = aten::AddTensor::create(b, sums, bias);
  }
  return sums;
}

}  // namespace

void addMatrixRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteProduct<aten::Mm>, rewriteProduct<aten::Matmul>, rewriteAddmm, rewriteBaddbmm,
              rewriteVectors, rewriteAddbmm, rewriteComputedLinear, rewriteComputedKernel);
}

}  // namespace carina::decompose
