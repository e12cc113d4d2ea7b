// SPDX-License-Identifier: Apache-2.0
// einsum, and the products with a vector or a summed batch: addmv, addr, addbmm.
#include "aten/einsum.hpp"
#include "aten/kernels/broadcast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

/// Strides of an operand per label of the plan; a label that occurs twice walks the diagonal.
Shape labelStrides(const Shape& shape, const std::vector<int>& labels, size_t count) {
  const Shape own = rowMajorStrides(shape);
  Shape strides(count, 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) strides[static_cast<size_t>(labels[d])] += own[d];
  }
  return strides;
}

/// Element offsets of an operand for all combinations of labels [from, to).
std::vector<int64_t> offsets(const Shape& sizes, const Shape& strides, size_t from, size_t to) {
  std::vector<int64_t> list{0};
  for (size_t label = from; label < to; ++label) {
    std::vector<int64_t> next;
    next.reserve(list.size() * static_cast<size_t>(sizes[label]));
    for (int64_t base : list) {
      for (int64_t i = 0; i < sizes[label]; ++i) next.push_back(base + i * strides[label]);
    }
    list = std::move(next);
  }
  return list;
}

/// Sums the product of all operands over the labels that are not in the result.
Result<Kernel> prepareEinsum(const ir::Node& node) {
  std::vector<Shape> shapes;
  for (const ir::Value* operand : node.operands()) shapes.push_back(operand->shape());
  CARINA_TRY(const EinsumPlan plan, parseEinsum(ir::cast<Einsum>(&node).equation(), shapes));
  const size_t labels = plan.sizes.size();
  std::vector<std::vector<int64_t>> outer, inner;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Shape strides = labelStrides(shapes[i], plan.operands[i], labels);
    outer.push_back(offsets(plan.sizes, strides, 0, plan.outputLabels));
    inner.push_back(offsets(plan.sizes, strides, plan.outputLabels, labels));
  }
  return Kernel([outer = std::move(outer), inner = std::move(inner)](Call& call) -> Status {
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      using A = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
      std::vector<const T*> data;
      for (size_t i = 0; i < call.numOperands(); ++i) data.push_back(call.operand(i).as<T>().data());
      T* out = call.allocate().mutableAs<T>().data();
      for (size_t o = 0; o < outer[0].size(); ++o) {
        A sum{0};
        for (size_t k = 0; k < inner[0].size(); ++k) {
          A product{1};
          for (size_t i = 0; i < data.size(); ++i)
            product = wrapMul(product, static_cast<A>(data[i][outer[i][o] + inner[i][k]]));
          sum = wrapAdd(sum, product);
        }
        out[o] = static_cast<T>(sum);
      }
      return {};
    });
  });
}

/// beta * self + alpha * product, where the product sums over `batch` matrices [m,k] x [k,n].
Result<Kernel> prepareAddProduct(const ir::Node& node) {
  const Arguments a(node);
  const ir::Attribute &beta = a.at("beta"), &alpha = a.at("alpha");
  const Shape &left = node.operand(1)->shape(), &right = node.operand(2)->shape();
  int64_t batch = 1, m = left[0], k = 1, n = 1;
  if (node.opName() == "aten.addr.default") {
    n = right[0];
  } else if (node.opName() == "aten.addmv.default") {
    k = left[1];
  } else {
    batch = left[0];
    m = left[1];
    k = left[2];
    n = right[2];
  }
  return Kernel([=](Call& call) -> Status {
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      using A = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
      const auto number = [](const ir::Attribute& value) {
        return std::is_floating_point_v<T> ? static_cast<A>(ir::scalarReal(value))
                                           : static_cast<A>(ir::scalarInt(value));
      };
      const A scaleSelf = number(beta), scaleProduct = number(alpha);
      const Tensor& self = call.operand(0);
      const T *s = self.as<T>().data(), *x = call.operand(1).as<T>().data(),
              *y = call.operand(2).as<T>().data();
      const auto at = broadcastOffsets(self.shape(), call.type().shape);
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          A sum{0};
          for (int64_t b = 0; b < batch; ++b) {
            for (int64_t c = 0; c < k; ++c) {
              sum = wrapAdd(sum, wrapMul(static_cast<A>(x[(b * m + i) * k + c]),
                                         static_cast<A>(y[(b * k + c) * n + j])));
            }
          }
          sum = wrapMul(sum, scaleProduct);
          if (scaleSelf != A{0})
            sum = wrapAdd(sum, wrapMul(scaleSelf, static_cast<A>(s[at[static_cast<size_t>(i * n + j)]])));
          out[i * n + j] = static_cast<T>(sum);
        }
      }
      return {};
    });
  });
}

constexpr KernelEntry kEinsumKernels[] = {
    {"aten.einsum.default", prepareEinsum},
    {"aten.addmv.default", prepareAddProduct},
    {"aten.addr.default", prepareAddProduct},
    {"aten.addbmm.default", prepareAddProduct},
};

}  // namespace

std::span<const KernelEntry> einsumKernels() {
  return kEinsumKernels;
}

}  // namespace carina::aten
