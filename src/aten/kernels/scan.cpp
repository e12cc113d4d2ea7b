// SPDX-License-Identifier: Apache-2.0
// Operators along one dimension that depend on its order: cumulative sums, sorting, the k largest elements.
#include <algorithm>
#include <numeric>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

/// A dimension of a tensor as `outer` x `size` x `inner`.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  Lines(const Shape& shape, int64_t dim) {
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      (d < dim ? outer : d == dim ? size : inner) *= shape[static_cast<size_t>(d)];
    }
  }
  /// f(outer index, inner index) for each line; elements of a line are `inner` apart.
  template <typename F>
  void run(F&& f) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) f(o, i);
    }
  }
};

template <bool kProduct>
Result<Kernel> prepareCumulative(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return Kernel([dim](Call& call) -> Status {
    const Tensor input = castTo(call.operand(0), call.type().dtype);
    const Lines lines(input.shape(), dim);
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
      const T* in = input.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      lines.run([&](int64_t o, int64_t i) {
        A sum = kProduct ? A{1} : A{0};
        for (int64_t k = 0; k < lines.size; ++k) {
          const int64_t at = (o * lines.size + k) * lines.inner + i;
          sum = kProduct ? wrapMul(sum, static_cast<A>(in[at])) : wrapAdd(sum, static_cast<A>(in[at]));
          out[at] = static_cast<T>(sum);
        }
      });
      return {};
    });
  });
}

/// The order of sort(): stable, with NaN as the largest value.
template <typename T>
std::vector<int64_t> sortedOrder(const T* line, int64_t size, int64_t stride, bool descending) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](T a, T b) {
    if (descending) return (isNan(a) && !isNan(b)) || a > b;
    return (isNan(b) && !isNan(a)) || a < b;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return before(line[a * stride], line[b * stride]); });
  return order;
}

/// The first `keep` elements of each sorted line (absent: all), as values and indices or as indices only.
Kernel sortKernel(int64_t dim, bool descending, std::optional<int64_t> keep, bool indicesOnly) {
  return [=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Lines lines(input.shape(), dim);
    const int64_t kept = keep.value_or(lines.size);
    return forNumber(
        input.dtype(),
        [&](auto tag) -> Status {
          using T = decltype(tag);
          const T* in = input.as<T>().data();
          T* values = indicesOnly ? nullptr : call.allocate(0).mutableAs<T>().data();
          int64_t* indices = call.allocate(indicesOnly ? 0 : 1).mutableAs<int64_t>().data();
          lines.run([&](int64_t o, int64_t i) {
            const T* line = in + o * lines.size * lines.inner + i;
            const auto order = sortedOrder(line, lines.size, lines.inner, descending);
            for (int64_t k = 0; k < kept; ++k) {
              const int64_t from = order[static_cast<size_t>(k)], to = (o * kept + k) * lines.inner + i;
              if (values) values[to] = line[from * lines.inner];
              indices[to] = from;
            }
          });
          return {};
        },
        true);
  };
}

Result<Kernel> prepareSort(const ir::Node& node) {
  const Arguments a(node);
  CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim", -1), node.operand(0)->rank()));
  return sortKernel(dim, a.boolean("descending"), std::nullopt, node.results().size() == 1);
}
Result<Kernel> prepareTopk(const ir::Node& node) {
  const Arguments a(node);
  CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim", -1), node.operand(0)->rank()));
  return sortKernel(dim, a.boolean("largest", true), a.integer("k"), false);
}

constexpr KernelEntry kScanKernels[] = {
    {"aten.cumsum.default", prepareCumulative<false>},
    {"aten.cumprod.default", prepareCumulative<true>},
    {"aten.sort.default", prepareSort},
    {"aten.sort.stable", prepareSort},
    {"aten.argsort.default", prepareSort},
    {"aten.argsort.stable", prepareSort},
    {"aten.topk.default", prepareTopk},
};

}  // namespace

std::span<const KernelEntry> scanKernels() {
  return kScanKernels;
}

}  // namespace carina::aten
