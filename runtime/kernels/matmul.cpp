// SPDX-License-Identifier: Apache-2.0
// Matrix products: mm, bmm, addmm, linear. float32, and integers that wrap.
#include "carina/kernels.hpp"
#include "functions.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

/// A matrix in a tensor: first element, and element steps from row to row and column to column.
struct Matrix {
  const Tensor* tensor;
  size_t start, rowStep, columnStep;
};

/// Scaling of an output element: alpha * product + beta * addend.
struct Scaling {
  Operand alpha, beta;
};

float dotReals(const Matrix& a, size_t row, const Matrix& b, size_t column, size_t depth) {
  const float* x = a.tensor->as<const float>() + a.start + row * a.rowStep;
  const float* y = b.tensor->as<const float>() + b.start + column * b.columnStep;
  // Four partial sums shorten dependency chains and reduce rounding.
  float sums[4] = {};
  size_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    for (size_t i = 0; i < 4; ++i) sums[i] += x[(k + i) * a.columnStep] * y[(k + i) * b.rowStep];
  }
  for (; k < depth; ++k) sums[0] += x[k * a.columnStep] * y[k * b.rowStep];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

int64_t dotIntegers(const Matrix& a, size_t row, const Matrix& b, size_t column, size_t depth) {
  int64_t sum = 0;
  for (size_t k = 0; k < depth; ++k) {
    int64_t x = 0, y = 0;
    loadIntegers(*a.tensor, a.start + row * a.rowStep + k * a.columnStep, 1, 1, &x);
    loadIntegers(*b.tensor, b.start + k * b.rowStep + column * b.columnStep, 1, 1, &y);
    sum = wrapAdd(sum, wrapMul(x, y));
  }
  return sum;
}

/// out[i][j] = sum over k of a[i][k] * b[k][j], scaled and added to `addend` (steps of 0 where it broadcasts;
/// null: none).
void multiply(const Matrix& a, const Matrix& b, const Matrix& out, size_t rows, size_t columns, size_t depth,
              const Matrix* addend, const Scaling* scaling) {
  const bool real = isReal(out.tensor->type);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const size_t to = out.start + i * out.rowStep + j * out.columnStep;
      const size_t from =
          addend == nullptr ? 0 : addend->start + i * addend->rowStep + j * addend->columnStep;
      if (real) {
        float value = dotReals(a, i, b, j, depth);
        float added = addend == nullptr ? 0.0f : addend->tensor->as<const float>()[from];
        if (scaling != nullptr) {
          value *= scaling->alpha.real;
          added = scaling->beta.real == 0.0f ? 0.0f : added * scaling->beta.real;
        }
        out.tensor->as<float>()[to] = value + added;
      } else {
        int64_t value = dotIntegers(a, i, b, j, depth), added = 0;
        if (addend != nullptr) loadIntegers(*addend->tensor, from, 1, 1, &added);
        if (scaling != nullptr) {
          value = wrapMul(value, scaling->alpha.integer);
          added = wrapMul(added, scaling->beta.integer);
        }
        value = wrapAdd(value, added);
        storeIntegers(*out.tensor, to, 1, 1, &value);
      }
    }
  }
}

/// The last two dimensions of a tensor.
Matrix matrixOf(const Tensor& tensor) {
  size_t steps[kMaxRank];
  strides(tensor, steps);
  return {&tensor, 0, steps[tensor.rank - 2], steps[tensor.rank - 1]};
}

bool sameTypes(const Tensor& a, const Tensor& b, const Tensor& c) {
  return a.type == b.type && b.type == c.type;
}

/// Product of two matrices, with an optional addend that broadcasts.
Status product(const Tensor& a, const Tensor& b, const Tensor& out, const Tensor* addend,
               const Scaling* scaling) {
  if (a.rank != 2 || b.rank != 2 || out.rank != 2) return shapesDiffer();
  if (a.sizes[1] != b.sizes[0] || out.sizes[0] != a.sizes[0] || out.sizes[1] != b.sizes[1])
    return shapesDiffer();
  if (!sameTypes(a, b, out) || (addend != nullptr && addend->type != out.type)) return typesDiffer();
  Matrix added{addend, 0, 0, 0};
  if (addend != nullptr) {
    if (addend->rank > 2) return shapesDiffer();
    size_t steps[kMaxRank];
    strides(*addend, steps);
    for (uint32_t d = 0; d < addend->rank; ++d) {
      const uint32_t into = d + 2u - addend->rank;
      if (addend->sizes[d] != 1 && addend->sizes[d] != out.sizes[into]) return shapesDiffer();
      (into == 0 ? added.rowStep : added.columnStep) = addend->sizes[d] == 1 ? 0 : steps[d];
    }
  }
  if (out.elements() == 0) return Status{};
  multiply(matrixOf(a), matrixOf(b), matrixOf(out), static_cast<size_t>(out.sizes[0]),
           static_cast<size_t>(out.sizes[1]), static_cast<size_t>(a.sizes[1]),
           addend == nullptr ? nullptr : &added, scaling);
  return Status{};
}

}  // namespace

Status mm(KernelContext& context) {
  Call call(context, 3);
  const Tensor* a = call.tensor(0);
  const Tensor* b = call.tensor(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  return product(*a, *b, *output, nullptr, nullptr);
}

Status addmm(KernelContext& context) {
  Call call(context, 6);
  const Tensor* addend = call.tensor(0);
  const Tensor* a = call.tensor(1);
  const Tensor* b = call.tensor(2);
  const Scaling scaling{call.operand(4), call.operand(3)};
  Tensor* output = call.output(5);
  call.require(scaling.alpha.tensor == nullptr && scaling.beta.tensor == nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  return product(*a, *b, *output, addend, &scaling);
}

Status bmm(KernelContext& context) {
  Call call(context, 3);
  const Tensor* a = call.tensor(0);
  const Tensor* b = call.tensor(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (a->rank != 3 || b->rank != 3 || output->rank != 3) return shapesDiffer();
  if (a->sizes[0] != b->sizes[0] || output->sizes[0] != a->sizes[0] || a->sizes[2] != b->sizes[1] ||
      output->sizes[1] != a->sizes[1] || output->sizes[2] != b->sizes[2])
    return shapesDiffer();
  if (!sameTypes(*a, *b, *output)) return typesDiffer();
  if (output->elements() == 0) return Status{};
  Matrix left = matrixOf(*a), right = matrixOf(*b), result = matrixOf(*output);
  size_t step[3][kMaxRank];
  strides(*a, step[0]);
  strides(*b, step[1]);
  strides(*output, step[2]);
  for (int32_t n = 0; n < output->sizes[0]; ++n) {
    multiply(left, right, result, static_cast<size_t>(output->sizes[1]),
             static_cast<size_t>(output->sizes[2]), static_cast<size_t>(a->sizes[2]), nullptr, nullptr);
    left.start += step[0][0];
    right.start += step[1][0];
    result.start += step[2][0];
  }
  return Status{};
}

/// input [..., in] times the transposed weight [out, in], plus bias [out]. Leading dimensions are rows, so
/// input and output must be row-major.
Status linear(KernelContext& context) {
  Call call(context, 4);
  const Tensor* input = call.tensor(0);
  const Tensor* weight = call.tensor(1);
  const Tensor* bias = call.optionalTensor(2);
  Tensor* output = call.output(3);
  if (!call.ok()) return call.status();
  if (!sameTypes(*input, *weight, *output) || (bias != nullptr && bias->type != output->type))
    return typesDiffer();
  if (input->rank == 0 || weight->rank != 2 || !sameExceptDim(*input, *output, input->rank - 1u))
    return shapesDiffer();
  const uint32_t last = input->rank - 1u;
  if (input->sizes[last] != weight->sizes[1] || output->sizes[last] != weight->sizes[0])
    return shapesDiffer();
  if (bias != nullptr && (bias->rank != 1 || bias->sizes[0] != weight->sizes[0])) return shapesDiffer();
  if (!isRowMajor(*input) || !isRowMajor(*output))
    return failure(Code::Unsupported, "linear takes row-major tensors");
  if (output->elements() == 0) return Status{};
  const size_t depth = static_cast<size_t>(weight->sizes[1]), columns = static_cast<size_t>(weight->sizes[0]);
  size_t steps[kMaxRank];
  strides(*weight, steps);
  const Matrix added{bias, 0, 0, 1};
  multiply({input, 0, depth, 1}, {weight, 0, steps[1], steps[0]}, {output, 0, columns, 1},
           output->elements() / columns, columns, depth, bias == nullptr ? nullptr : &added, nullptr);
  return Status{};
}

}  // namespace carina::rt::kernels
