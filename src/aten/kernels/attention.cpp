// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention.
#include <cmath>
#include <limits>

#include "aten/kernels/broadcast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/gemm.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Softmax of a row in place; a row that is entirely masked becomes 0.
void softmaxRow(float* row, int64_t n) {
  float high = kMasked;
  for (int64_t i = 0; i < n; ++i) high = row[i] > high ? row[i] : high;
  if (high == kMasked) {
    for (int64_t i = 0; i < n; ++i) row[i] = row[i] == kMasked ? 0.0f : row[i];
    return;
  }
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    row[i] = std::exp(row[i] - high);
    sum += static_cast<double>(row[i]);
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (int64_t i = 0; i < n; ++i) row[i] *= inverse;
}

/// Flat matrix index of each element of the joint batch, for a tensor with batch dimensions `own`; with
/// `repeat`, every matrix of the last batch dimension serves that many heads.
std::vector<int64_t> batchIndex(Shape heads, const Shape& joint, int64_t repeat) {
  if (repeat > 1) heads.back() *= repeat;
  std::vector<int64_t> index = broadcastOffsets(heads, joint);
  for (int64_t& at : index) at /= repeat;
  return index;
}

Result<Kernel> prepareAttention(const ir::Node& node) {
  const Arguments a(node);
  const std::optional<double> scale = a.given("scale") ? std::optional(a.real("scale")) : std::nullopt;
  const bool causal = a.boolean("is_causal"), grouped = a.boolean("enable_gqa");
  return Kernel([=](Call& call) -> Status {
    const Tensor &q = call.operand(0), &k = call.operand(1), &v = call.operand(2);
    const Tensor* mask = call.named(3);
    for (const Tensor* tensor : {&q, &k, &v}) {
      if (tensor->dtype() != DType::Float32) return unsupportedType(tensor->dtype());
    }
    const int64_t rank = q.rank(), rows = q.dim(rank - 2), columns = k.dim(rank - 2), e = q.dim(rank - 1),
                  ev = v.dim(rank - 1);
    const auto lead = [](const Tensor& tensor) {
      return Shape(tensor.shape().begin(), tensor.shape().end() - 2);
    };
    const Shape joint(call.type().shape.begin(), call.type().shape.end() - 2);
    const int64_t repeat = grouped ? q.dim(rank - 3) / k.dim(rank - 3) : 1;
    const auto atQ = batchIndex(lead(q), joint, 1), atK = batchIndex(lead(k), joint, repeat),
               atV = batchIndex(lead(v), joint, repeat);
    const auto factor = static_cast<float>(scale.value_or(1 / std::sqrt(static_cast<double>(e))));
    Tensor scores = Tensor::uninitialized(DType::Float32, {rows, columns});
    float* s = scores.mutableAs<float>().data();
    float* out = call.allocate().mutableAs<float>().data();
    Shape scoreShape = joint, maskStrides;
    scoreShape.insert(scoreShape.end(), {rows, columns});
    if (mask) maskStrides = broadcastStrides(mask->shape(), scoreShape);
    const Shape jointStrides = rowMajorStrides(joint);
    for (size_t b = 0; b < atQ.size(); ++b) {
      CARINA_RETURN_IF_ERROR(gemm(true, rows, columns, e, factor, q.as<float>().data() + atQ[b] * rows * e,
                                  k.as<float>().data() + atK[b] * columns * e, 0, s));
      int64_t maskAt = 0;
      for (size_t d = 0; mask && d < joint.size(); ++d)
        maskAt += static_cast<int64_t>(b) / jointStrides[d] % joint[d] * maskStrides[d];
      for (int64_t i = 0; i < rows; ++i) {
        float* row = s + i * columns;
        for (int64_t j = 0; j < columns; ++j) {
          if (causal && j > i) row[j] = kMasked;
          if (!mask) continue;
          const int64_t at = maskAt + i * maskStrides[joint.size()] + j * maskStrides[joint.size() + 1];
          if (mask->dtype() == DType::Bool) {
            if (!mask->as<uint8_t>()[static_cast<size_t>(at)]) row[j] = kMasked;
          } else {
            row[j] += static_cast<float>(mask->realAt(at));
          }
        }
        softmaxRow(row, columns);
      }
      CARINA_RETURN_IF_ERROR(gemm(false, rows, ev, columns, 1, s,
                                  v.as<float>().data() + atV[b] * columns * ev, 0,
                                  out + static_cast<int64_t>(b) * rows * ev));
    }
    return {};
  });
}

constexpr KernelEntry kAttentionKernels[] = {{"aten.scaled_dot_product_attention.default", prepareAttention}};

}  // namespace

std::span<const KernelEntry> attentionKernels() {
  return kAttentionKernels;
}

}  // namespace carina::aten
