// SPDX-License-Identifier: Apache-2.0
// Matrix products: mm, bmm, addmm, linear, matmul and vectors.
#include "aten/kernels/broadcast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/gemm.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

template <typename T>
Status multiply(bool transposeB, int64_t m, int64_t n, int64_t k, T alpha, const T* a, const T* b, T beta,
                T* c) {
  if constexpr (std::is_same_v<T, float>) {
    return gemm(transposeB, m, n, k, alpha, a, b, beta, c);
  } else {
    gemmOf<T>(transposeB, m, n, k, alpha, a, b, beta, c);
    return {};
  }
}

/// Copies `from`, broadcast to `shape`, to `out`.
template <typename T>
void fillBroadcast(const Tensor& from, const Shape& shape, T* out) {
  const T* in = from.as<T>().data();
  const BroadcastLoop<1> loop(shape, {broadcastStrides(from.shape(), shape)});
  loop.run(
      [&](int64_t first, int64_t n, const std::array<int64_t, 1>& at, const std::array<int64_t, 1>& step) {
        for (int64_t i = 0; i < n; ++i) out[first + i] = in[at[0] + i * step[0]];
      });
}

/// Dimensions of a batched product after vectors have been converted to matrices.
struct Product {
  Shape batchA, batchB, batch;
  int64_t m = 1, n = 1, k = 1;
};

/// A vector on the left is treated as a row, on the right as a column.
Product productOf(const Shape& a, const Shape& b) {
  Product p;
  p.k = a.back();
  if (a.size() >= 2) {
    p.m = a[a.size() - 2];
    p.batchA.assign(a.begin(), a.end() - 2);
  }
  if (b.size() >= 2) {
    p.n = b.back();
    p.batchB.assign(b.begin(), b.end() - 2);
  }
  p.batch = *broadcastShapes(p.batchA, p.batchB);
  return p;
}

/// Multiplies all pairs of matrices of the (broadcast) batch.
template <typename T>
Status multiplyBatch(const Tensor& a, const Tensor& b, T* out) {
  const Product p = productOf(a.shape(), b.shape());
  const T *left = a.as<T>().data(), *right = b.as<T>().data();
  if (p.batchB.empty() ||
      numElements(p.batchB) == 1) {  // one right matrix: the left matrices form one tall matrix
    const int64_t rows = numElements(p.batchA) * p.m;
    if (numElements(p.batch) == numElements(p.batchA))
      return multiply<T>(false, rows, p.n, p.k, T{1}, left, right, T{0}, out);
  }
  const std::vector<int64_t> atA = broadcastOffsets(p.batchA, p.batch),
                             atB = broadcastOffsets(p.batchB, p.batch);
  for (size_t i = 0; i < atA.size(); ++i) {
    CARINA_RETURN_IF_ERROR(multiply<T>(false, p.m, p.n, p.k, T{1}, left + atA[i] * p.m * p.k,
                                       right + atB[i] * p.k * p.n, T{0},
                                       out + static_cast<int64_t>(i) * p.m * p.n));
  }
  return {};
}

Status checkTypes(const Call& call) {
  for (size_t i = 1; i < call.numOperands(); ++i) {
    if (call.present(i) && call.operand(i).dtype() != call.operand(0).dtype()) {
      return fail(Code::WrongElementType, "matrix products of {} and {} are not supported",
                  dtypeName(call.operand(0).dtype()), dtypeName(call.operand(i).dtype()));
    }
  }
  return {};
}

Result<Kernel> prepareMatmul(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(checkTypes(call));
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      return multiplyBatch<T>(call.operand(0), call.operand(1), call.allocate().mutableAs<T>().data());
    });
  });
}

/// beta * self + alpha * (a b); beta 0 ignores self, even its NaNs.
Result<Kernel> prepareAddmm(const ir::Node& node) {
  const ir::Attribute beta = Arguments(node).at("beta"), alpha = Arguments(node).at("alpha");
  return Kernel([=](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(checkTypes(call));
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      const auto number = [](const ir::Attribute& value) {
        return std::is_floating_point_v<T> ? static_cast<T>(ir::scalarReal(value))
                                           : static_cast<T>(ir::scalarInt(value));
      };
      const Tensor &a = call.operand(1), &b = call.operand(2);
      T* out = call.allocate().mutableAs<T>().data();
      if (number(beta) != T{0}) fillBroadcast(call.operand(0), call.type().shape, out);
      const Product p = productOf(a.shape(), b.shape());
      for (int64_t i = 0; i < numElements(p.batch); ++i) {
        CARINA_RETURN_IF_ERROR(multiply<T>(false, p.m, p.n, p.k, number(alpha),
                                           a.as<T>().data() + i * p.m * p.k, b.as<T>().data() + i * p.k * p.n,
                                           number(beta), out + i * p.m * p.n));
      }
      return {};
    });
  });
}

/// x W^T + b over the last dimension.
Result<Kernel> prepareLinear(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(checkTypes(call));
    const Tensor &input = call.operand(0), &weight = call.operand(1);
    const Tensor* bias = call.named(2);
    const int64_t k = weight.shape().back(), n = weight.numElements() / std::max<int64_t>(k, 1);
    const int64_t m = k == 0 ? 0 : input.numElements() / k;
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      T* out = call.allocate().mutableAs<T>().data();
      if (bias) fillBroadcast(*bias, call.type().shape, out);
      return multiply<T>(true, m, n, k, T{1}, input.as<T>().data(), weight.as<T>().data(), bias ? T{1} : T{0},
                         out);
    });
  });
}

Result<Kernel> prepareOuter(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    CARINA_RETURN_IF_ERROR(checkTypes(call));
    const int64_t m = call.operand(0).numElements(), n = call.operand(1).numElements();
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      return multiply<T>(false, m, n, 1, T{1}, call.operand(0).as<T>().data(), call.operand(1).as<T>().data(),
                         T{0}, call.allocate().mutableAs<T>().data());
    });
  });
}

constexpr KernelEntry kMatmulKernels[] = {
    {"aten.mm.default", prepareMatmul},     {"aten.bmm.default", prepareMatmul},
    {"aten.matmul.default", prepareMatmul}, {"aten.mv.default", prepareMatmul},
    {"aten.dot.default", prepareMatmul},    {"aten.addmm.default", prepareAddmm},
    {"aten.baddbmm.default", prepareAddmm}, {"aten.linear.default", prepareLinear},
    {"aten.outer.default", prepareOuter},
};

}  // namespace

std::span<const KernelEntry> matmulKernels() {
  return kMatmulKernels;
}

}  // namespace carina::aten
