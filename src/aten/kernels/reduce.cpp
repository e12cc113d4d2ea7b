// SPDX-License-Identifier: Apache-2.0
// Reductions: sum, mean, prod, extremes with and without indices, any, all, logsumexp, norms.
#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/fold.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/numeric.hpp"

namespace carina::aten {
namespace {

/// double for floats (float sums would lose precision), int64 for everything else.
template <typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

enum class FoldTypes { Numbers, Floats };

/// Folds with f(accumulator, element), beginning with `start`, and returns finish(accumulator, count). The
/// operand is cast to the result's type first, as dtype= specifies, and must be one of kTypes.
template <FoldTypes kTypes, typename F, typename Finish>
Result<Kernel> foldKernel(const ir::Node& node, double start, F f, Finish finish) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  return Kernel([=](Call& call) -> Status {
    const Tensor input = castTo(call.operand(0), call.type().dtype);
    const auto foldAs = [&](auto tag) -> Status {
      using T = decltype(tag);
      using A = Accumulator<T>;
      const T* in = input.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      fold.run([&](int64_t at, auto&& elements) {
        A sum = static_cast<A>(start);
        elements([&](int64_t i) { sum = f(sum, static_cast<A>(in[i])); });
        out[at] = static_cast<T>(finish(sum, fold.count()));
      });
      return {};
    };
    if constexpr (kTypes == FoldTypes::Floats)
      return forFloat(input.dtype(), foldAs);
    else
      return forNumber(input.dtype(), foldAs);
  });
}

/// Whether any element, or all of them, are nonzero.
template <bool kAny, bool kSkipsNan = false>
Result<Kernel> prepareAnyAll(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forNumber(
        input.dtype(),
        [&](auto tag) -> Status {
          using T = decltype(tag);
          const T* in = input.as<T>().data();
          uint8_t* out = call.allocate().mutableAs<uint8_t>().data();
          for (int64_t at = 0; at < fold.outputs(); ++at) {
            bool result = !kAny;
            fold.visit(at, [&](int64_t i) {
              const bool isTrue = in[i] != T{0} && !(kSkipsNan && isNan(in[i]));
              result = kAny ? result || isTrue : result && isTrue;
            });
            out[at] = result;
          }
          return {};
        },
        true);
  });
}

const auto kKeep = [](auto sum, int64_t) { return sum; };

// Sums and products of booleans (dtype=torch.bool) test whether any, or all, are true.

Result<Kernel> prepareSum(const ir::Node& node) {
  if (node.result()->dtype() == DType::Bool) return prepareAnyAll<true>(node);
  return foldKernel<FoldTypes::Numbers>(
      node, 0, [](auto a, auto b) { return wrapAdd(a, b); }, kKeep);
}
Result<Kernel> prepareNansum(const ir::Node& node) {
  if (node.result()->dtype() == DType::Bool) return prepareAnyAll<true, true>(node);
  return foldKernel<FoldTypes::Numbers>(
      node, 0, [](auto a, auto b) { return isNan(b) ? a : wrapAdd(a, b); }, kKeep);
}
Result<Kernel> prepareMean(const ir::Node& node) {
  return foldKernel<FoldTypes::Floats>(
      node, 0, [](auto a, auto b) { return wrapAdd(a, b); },
      [](auto sum, int64_t n) { return static_cast<double>(sum) / static_cast<double>(n); });
}
Result<Kernel> prepareProd(const ir::Node& node) {
  if (node.result()->dtype() == DType::Bool) return prepareAnyAll<false>(node);
  return foldKernel<FoldTypes::Numbers>(
      node, 1, [](auto a, auto b) { return wrapMul(a, b); }, kKeep);
}

/// Index of the extreme element of each fold: the first of equal elements; NaN takes precedence.
template <bool kMaximum, typename T>
int64_t extremeOf(const Fold& fold, const T* in, int64_t at) {
  int64_t best = -1;
  fold.visit(at, [&](int64_t i) {
    if (best < 0 || (!isNan(in[best]) && (isNan(in[i]) || (kMaximum ? in[i] > in[best] : in[i] < in[best]))))
      best = i;
  });
  return best;
}

/// Values (amax, max), values and indices (max.dim), or indices only (argmax), according to the results.
template <bool kMaximum>
Result<Kernel> prepareExtreme(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  const bool indexOnly = node.opName().starts_with("aten.arg");
  const bool withIndex = indexOnly || node.results().size() == 2;
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forNumber(
        input.dtype(),
        [&](auto tag) -> Status {
          using T = decltype(tag);
          const T* in = input.as<T>().data();
          T* values = indexOnly ? nullptr : call.allocate(0).mutableAs<T>().data();
          int64_t* indices =
              withIndex ? call.allocate(indexOnly ? 0 : 1).mutableAs<int64_t>().data() : nullptr;
          for (int64_t at = 0; at < fold.outputs(); ++at) {
            const int64_t best = extremeOf<kMaximum>(fold, in, at);
            if (values) values[at] = in[best];
            if (indices) indices[at] = fold.position(at, best);
          }
          return {};
        },
        true);
  });
}

/// m + log(sum exp(x - m)) with m the maximum (0 if infinite).
Result<Kernel> prepareLogsumexp(const ir::Node& node) {
  CARINA_TRY(const ReduceDims dims, reduceDims(node));
  const Fold fold(node.operand(0)->shape(), dims);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t at = 0; at < fold.outputs(); ++at) {
        double m = fold.count() ? static_cast<double>(in[extremeOf<true>(fold, in, at)]) : 0;
        if (std::isinf(m)) m = 0;
        double sum = 0;
        fold.visit(at, [&](int64_t i) { sum += std::exp(static_cast<double>(in[i]) - m); });
        out[at] = static_cast<T>(m + std::log(sum));
      }
      return {};
    });
  });
}

/// (sum |x|^p)^(1/p) with its limits: inf, -inf, 0.
Result<Kernel> prepareNorm(const ir::Node& node) {
  const Arguments a(node);
  const double p = a.real(a.has("ord") ? "ord" : "p", 2);
  const auto absolute = [](auto x) { return x < 0 ? -x : x; };
  if (std::isinf(p) && p > 0)
    return foldKernel<FoldTypes::Floats>(
        node, 0, [=](auto s, auto x) { return maximumOf(s, absolute(x)); }, kKeep);
  if (std::isinf(p)) {
    return foldKernel<FoldTypes::Floats>(
        node, std::numeric_limits<double>::infinity(),
        [=](auto s, auto x) { return minimumOf(s, absolute(x)); }, kKeep);
  }
  if (p == 0)
    return foldKernel<FoldTypes::Floats>(
        node, 0, [](auto s, auto x) { return s + (x != 0); }, kKeep);
  if (p == 1)
    return foldKernel<FoldTypes::Floats>(
        node, 0, [=](auto s, auto x) { return s + absolute(x); }, kKeep);
  if (p == 2) {
    return foldKernel<FoldTypes::Floats>(
        node, 0, [](auto s, auto x) { return s + x * x; },
        [](auto s, int64_t) { return std::sqrt(static_cast<double>(s)); });
  }
  return foldKernel<FoldTypes::Floats>(
      node, 0, [=](auto s, auto x) { return static_cast<decltype(s)>(s + std::pow(absolute(x), p)); },
      [=](auto s, int64_t) { return std::pow(static_cast<double>(s), 1 / p); });
}

constexpr KernelEntry kReduceKernels[] = {
    {"aten.sum.default", prepareSum},
    {"aten.sum.dim_IntList", prepareSum},
    {"aten.nansum.default", prepareNansum},
    {"aten.mean.default", prepareMean},
    {"aten.mean.dim", prepareMean},
    {"aten.prod.default", prepareProd},
    {"aten.prod.dim_int", prepareProd},
    {"aten.amax.default", prepareExtreme<true>},
    {"aten.amin.default", prepareExtreme<false>},
    {"aten.max.default", prepareExtreme<true>},
    {"aten.min.default", prepareExtreme<false>},
    {"aten.max.dim", prepareExtreme<true>},
    {"aten.min.dim", prepareExtreme<false>},
    {"aten.argmax.default", prepareExtreme<true>},
    {"aten.argmin.default", prepareExtreme<false>},
    {"aten.any.default", prepareAnyAll<true>},
    {"aten.any.dim", prepareAnyAll<true>},
    {"aten.any.dims", prepareAnyAll<true>},
    {"aten.all.default", prepareAnyAll<false>},
    {"aten.all.dim", prepareAnyAll<false>},
    {"aten.all.dims", prepareAnyAll<false>},
    {"aten.logsumexp.default", prepareLogsumexp},
    {"aten.norm.Scalar", prepareNorm},
    {"aten.norm.ScalarOpt_dim", prepareNorm},
    {"aten.linalg_vector_norm.default", prepareNorm},
};

}  // namespace

std::span<const KernelEntry> reduceKernels() {
  return kReduceKernels;
}

}  // namespace carina::aten
