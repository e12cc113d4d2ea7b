// SPDX-License-Identifier: Apache-2.0
// Sampling at the positions of a grid: a product with a constant matrix if they are known, else gathers.
#include <algorithm>

#include "aten/ops.hpp"
#include "aten/sampling.hpp"
#include "decompose/rewrites.hpp"
#include "decompose/volumes.hpp"

namespace carina::decompose {
namespace {

// A matrix with more elements has no advantage over sampling on the CPU.
constexpr int64_t kMaxSamplingWeights = int64_t{1} << 20;

/// The weights of the elements that each position of slice n of a grid reads: [positions, elements of a plane
/// or volume].
Tensor samplingMatrix(const aten::GridSampling& sampling, const Tensor& grid, int64_t n,
                      const Shape& spatial) {
  const auto dims = static_cast<int64_t>(spatial.size());
  const int64_t elements = numElements(spatial), positions = grid.numElements() / (grid.dim(0) * dims);
  Tensor matrix = Tensor::zeros(DType::Float32, {positions, elements});
  const auto to = matrix.mutableAs<float>();
  const float* from = grid.as<float>().data() + n * positions * dims;
  for (int64_t p = 0; p < positions; ++p) {
    aten::Taps taps{aten::Tap{}};  // by element index
    for (size_t d = 0; d < spatial.size(); ++d) {
      aten::Taps finer;
      for (const aten::Tap& outer : taps) {
        for (const aten::Tap& inner :
             sampling.taps(from[(p + 1) * dims - 1 - static_cast<int64_t>(d)], spatial[d]))
          finer.push_back({outer.at * spatial[d] + inner.at, outer.weight * inner.weight});
      }
      taps = std::move(finer);
    }
    for (const aten::Tap& tap : taps) to[static_cast<size_t>(p * elements + tap.at)] += tap.weight;
  }
  return matrix;
}

Result<ir::Value*> rewriteKnownGrid(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::GridSampler>(node) && !ir::isa<aten::GridSampler2d>(node)) return nullptr;
  ir::Value *input = node->operands()[0], *grid = node->operands()[1];
  if (!grid->isConstant() || grid->dtype() != DType::Float32 || input->dtype() != DType::Float32 ||
      input->isConstant() || isQuantizedAsUnit(*node))
    return nullptr;
  const Shape shape = input->shape(), result = node->result()->shape();
  const Shape spatial(shape.begin() + 2, shape.end());
  const int64_t positions = numElements(Shape(result.begin() + 2, result.end())),
                elements = numElements(spatial);
  const auto weights = checkedMul(positions, elements);
  if (!weights || *weights > kMaxSamplingWeights || *weights == 0) return nullptr;
  CARINA_TRY(const aten::GridSampling sampling, aten::gridSampling(*node));
  ir::Value* x = reshaped(b, input, {shape[0], shape[1], elements});
  const auto bytes = grid->constant().bytes();
  const size_t slice = shape[0] > 0 ? bytes.size() / static_cast<size_t>(shape[0]) : 0;
  const auto sliceBytes = [&](int64_t n) { return bytes.subspan(static_cast<size_t>(n) * slice, slice); };
  // Adjacent samples with the same grid share one matrix.
  std::vector<ir::Value*> parts;
  for (int64_t n = 0; n < shape[0];) {
    int64_t end = n + 1;
    while (end < shape[0] && std::equal(sliceBytes(n).begin(), sliceBytes(n).end(), sliceBytes(end).begin()))
      ++end;
    ir::Value* part = end - n == shape[0] ? x : aten::SliceTensor::create(b, x, int64_t{0}, n, end);
    ir::Value* matrix = b.constant(samplingMatrix(sampling, grid->constant(), n, spatial));
    parts.push_back(aten::Linear::create(b, part, matrix, nullptr));
    n = end;
  }
  ir::Value* sampled = parts.size() == 1 ? parts[0] : aten::Cat::create(b, parts);
  return reshaped(b, sampled, result);
}

Result<ir::Value*> rewriteComputedGrid(ir::Builder& b, ir::Node* node) {
  if (!ir::isa<aten::GridSampler>(node) && !ir::isa<aten::GridSampler2d>(node)) return nullptr;
  if (node->operands()[1]->isConstant() || isQuantizedAsUnit(*node)) return nullptr;
  return sampleByGathers(b, node);
}

}  // namespace

void addGridRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteKnownGrid);
}
void addComputedGridRewrites(std::vector<ir::Rewrite>& rewrites) {
  addRewrites(rewrites, rewriteComputedGrid);
}

}  // namespace carina::decompose
