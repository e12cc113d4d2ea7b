// SPDX-License-Identifier: Apache-2.0
// Order statistics and running extremes: median, kthvalue, aminmax, cummax, cummin, logcumsumexp,
// count_nonzero, nanmean.
#include <algorithm>
#include <cmath>
#include <limits>

#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/fold.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

/// The k-th smallest element of each fold (median: the lower of the two middle elements); the median is NaN
/// if any element is.
Result<Kernel> prepareOrder(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  const Arguments a(node);
  const bool median = !a.has("k");
  const int64_t k = median ? (fold.count() - 1) / 2 : a.integer("k") - 1;
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* values = call.allocate(0).mutableAs<T>().data();
      int64_t* indices = call.numResults() > 1 ? call.allocate(1).mutableAs<int64_t>().data() : nullptr;
      std::vector<int64_t> elements;
      for (int64_t at = 0; at < fold.outputs(); ++at) {
        elements.clear();
        fold.visit(at, [&](int64_t i) { elements.push_back(i); });
        std::stable_sort(elements.begin(), elements.end(), [&](int64_t x, int64_t y) {
          return (isNan(in[y]) && !isNan(in[x])) || in[x] < in[y];
        });
        int64_t chosen = elements[static_cast<size_t>(k)];
        if (median && isNan(in[elements.back()])) {
          chosen = *std::find_if(elements.begin(), elements.end(), [&](int64_t i) { return isNan(in[i]); });
        }
        values[at] = in[chosen];
        if (indices) indices[at] = fold.position(at, chosen);
      }
      return {};
    });
  });
}

Result<Kernel> prepareAminmax(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T *low = call.allocate(0).mutableAs<T>().data(), *high = call.allocate(1).mutableAs<T>().data();
      for (int64_t at = 0; at < fold.outputs(); ++at) {
        bool first = true;
        fold.visit(at, [&](int64_t i) {
          low[at] = first ? in[i] : minimumOf(low[at], in[i]);
          high[at] = first ? in[i] : maximumOf(high[at], in[i]);
          first = false;
        });
      }
      return {};
    });
  });
}

Result<Kernel> prepareCount(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    int64_t* out = call.allocate().mutableAs<int64_t>().data();
    for (int64_t at = 0; at < fold.outputs(); ++at) {
      out[at] = 0;
      fold.visit(at, [&](int64_t i) { out[at] += input.realAt(i) != 0; });
    }
    return {};
  });
}

Result<Kernel> prepareNanmean(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forFloat(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t at = 0; at < fold.outputs(); ++at) {
        double sum = 0;
        int64_t count = 0;
        fold.visit(at, [&](int64_t i) {
          const double value = input.realAt(i);
          if (value != value) return;
          sum += value;
          ++count;
        });
        out[at] = static_cast<T>(sum / static_cast<double>(count));
      }
      return {};
    });
  });
}

/// Calls line(first element, size, step) for each line along one dimension.
template <typename Line>
void alongLines(const Shape& shape, int64_t dim, Line&& line) {
  int64_t outer = 1, size = 1, inner = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < dim ? outer : d == dim ? size : inner) *= shape[static_cast<size_t>(d)];
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) line(o * size * inner + i, size, inner);
  }
}

/// Running extreme and its index: the last of equal elements; NaN propagates.
template <bool kMaximum>
Result<Kernel> prepareCumulativeExtreme(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return Kernel([dim](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forNumber(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* values = call.allocate(0).mutableAs<T>().data();
      int64_t* indices = call.allocate(1).mutableAs<int64_t>().data();
      alongLines(input.shape(), dim, [&](int64_t first, int64_t n, int64_t step) {
        int64_t best = 0;
        for (int64_t k = 0; k < n; ++k) {
          const T value = in[first + k * step], held = in[first + best * step];
          if (isNan(value) || (!isNan(held) && (kMaximum ? value >= held : value <= held))) best = k;
          values[first + k * step] = in[first + best * step];
          indices[first + k * step] = best;
        }
      });
      return {};
    });
  });
}

Result<Kernel> prepareLogcumsumexp(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  return Kernel([dim](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      alongLines(input.shape(), dim, [&](int64_t first, int64_t n, int64_t step) {
        double running = -std::numeric_limits<double>::infinity();
        for (int64_t k = 0; k < n; ++k) {
          const auto value = static_cast<double>(in[first + k * step]);
          const double high = maximumOf(running, value);
          running =
              std::isinf(high) ? high : high + std::log(std::exp(running - high) + std::exp(value - high));
          out[first + k * step] = static_cast<T>(running);
        }
      });
      return {};
    });
  });
}

/// Sum of the diagonal.
Result<Kernel> prepareTrace(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const int64_t n = std::min(input.dim(0), input.dim(1));
    return forNumber(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      T sum{0};
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = i * (input.dim(1) + 1);
        sum = wrapAdd(sum, std::is_floating_point_v<T> ? static_cast<T>(input.realAt(at))
                                                       : static_cast<T>(input.integerAt(at)));
      }
      call.allocate().mutableAs<T>()[0] = sum;
      return {};
    });
  });
}

constexpr KernelEntry kOrderKernels[] = {
    {"aten.median.default", prepareOrder},
    {"aten.median.dim", prepareOrder},
    {"aten.kthvalue.default", prepareOrder},
    {"aten.aminmax.default", prepareAminmax},
    {"aten.count_nonzero.default", prepareCount},
    {"aten.count_nonzero.dim_IntList", prepareCount},
    {"aten.nanmean.default", prepareNanmean},
    {"aten.cummax.default", prepareCumulativeExtreme<true>},
    {"aten.cummin.default", prepareCumulativeExtreme<false>},
    {"aten.logcumsumexp.default", prepareLogcumsumexp},
    {"aten.trace.default", prepareTrace},
};

}  // namespace

std::span<const KernelEntry> orderKernels() {
  return kOrderKernels;
}

}  // namespace carina::aten
