// SPDX-License-Identifier: Apache-2.0
// Distances between rows and similarity of tensors.
#include <algorithm>
#include <cmath>

#include "aten/kernels/broadcast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

/// (sum |d|^p)^(1/p) of n differences d(i), with its limits at 0 and infinity.
template <typename F>
double normOf(int64_t n, double p, F&& difference) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::abs(difference(i));
    if (std::isinf(p)) {
      sum = std::max(sum, d);
    } else {
      sum += p == 0 ? (d != 0) : p == 1 ? d : p == 2 ? d * d : std::pow(d, p);
    }
  }
  if (p == 2) return std::sqrt(sum);
  return p == 0 || p == 1 || std::isinf(p) ? sum : std::pow(sum, 1 / p);
}

/// Distances of every row of x1[..., P, M] from every row of x2[..., R, M].
Result<Kernel> prepareCdist(const ir::Node& node) {
  const double p = Arguments(node).real("p", 2);
  if (!(p >= 0)) return fail(Code::UnsupportedForm, "distances of order {} are not supported", p);
  return Kernel([p](Call& call) -> Status {
    const Tensor &a = call.operand(0), &b = call.operand(1);
    const auto lead = [](const Tensor& t) { return Shape(t.shape().begin(), t.shape().end() - 2); };
    const Shape joint(call.type().shape.begin(), call.type().shape.end() - 2);
    const auto atA = broadcastOffsets(lead(a), joint), atB = broadcastOffsets(lead(b), joint);
    const int64_t rows = a.dim(a.rank() - 2), others = b.dim(b.rank() - 2), m = a.dim(a.rank() - 1);
    return forFloat(a.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      T* out = call.allocate().mutableAs<T>().data();
      for (size_t batch = 0; batch < atA.size(); ++batch) {
        for (int64_t i = 0; i < rows; ++i) {
          const T* x = a.as<T>().data() + (atA[batch] * rows + i) * m;
          for (int64_t j = 0; j < others; ++j) {
            const T* y = b.as<T>().data() + (atB[batch] * others + j) * m;
            *out++ = static_cast<T>(normOf(
                m, p, [&](int64_t k) { return static_cast<double>(x[k]) - static_cast<double>(y[k]); }));
          }
        }
      }
      return {};
    });
  });
}

/// Distances of the pairs of rows (i, j), i < j, of one matrix.
Result<Kernel> preparePdist(const ir::Node& node) {
  const double p = Arguments(node).real("p", 2);
  return Kernel([p](Call& call) -> Status {
    const Tensor& a = call.operand(0);
    const int64_t rows = a.dim(0), m = a.dim(1);
    return forFloat(a.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* x = a.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = i + 1; j < rows; ++j) {
          *out++ = static_cast<T>(normOf(m, p, [&](int64_t k) {
            return static_cast<double>(x[i * m + k]) - static_cast<double>(x[j * m + k]);
          }));
        }
      }
      return {};
    });
  });
}

/// Sets each result element to line(size, x, y), where x(k) and y(k) are the values along one dimension of
/// two broadcast operands.
template <typename T, typename Line>
void alongPairs(const Tensor& a, const Tensor& b, int64_t dim, T* out, Line&& line) {
  const Shape joint = *broadcastShapes(a.shape(), b.shape());
  const auto atA = broadcastOffsets(a.shape(), joint), atB = broadcastOffsets(b.shape(), joint);
  int64_t outer = 1, size = 1, inner = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(joint.size()); ++d) {
    (d < dim ? outer : d == dim ? size : inner) *= joint[static_cast<size_t>(d)];
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto element = [&](int64_t k) { return static_cast<size_t>((o * size + k) * inner + i); };
      out[o * inner + i] = static_cast<T>(line(
          size,
          [&](int64_t k) { return static_cast<double>(a.as<T>()[static_cast<size_t>(atA[element(k)])]); },
          [&](int64_t k) { return static_cast<double>(b.as<T>()[static_cast<size_t>(atB[element(k)])]); }));
    }
  }
}

/// sum(x / max(|x|, eps) * y / max(|y|, eps))
Result<Kernel> prepareCosine(const ir::Node& node) {
  const double eps = Arguments(node).real("eps", 1e-8);
  const int64_t raw = Arguments(node).integer("dim", 1);
  const auto joint = broadcastShapes(node.operand(0)->shape(), node.operand(1)->shape());
  CARINA_TRY(const int64_t dim, wrapDim(raw, joint ? static_cast<int64_t>(joint->size()) : 0));
  return Kernel([=](Call& call) -> Status {
    return forFloat(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      alongPairs(call.operand(0), call.operand(1), dim, call.allocate().mutableAs<T>().data(),
                 [eps](int64_t n, auto x, auto y) {
                   double xy = 0, xx = 0, yy = 0;
                   for (int64_t k = 0; k < n; ++k) {
                     xy += x(k) * y(k);
                     xx += x(k) * x(k);
                     yy += y(k) * y(k);
                   }
                   return xy / (std::max(std::sqrt(xx), eps) * std::max(std::sqrt(yy), eps));
                 });
      return {};
    });
  });
}

/// norm(x - y + eps) over the last dimension
Result<Kernel> preparePairwise(const ir::Node& node) {
  const double p = Arguments(node).real("p", 2), eps = Arguments(node).real("eps", 1e-6);
  const auto joint = broadcastShapes(node.operand(0)->shape(), node.operand(1)->shape());
  const int64_t dim = joint ? static_cast<int64_t>(joint->size()) - 1 : 0;
  return Kernel([=](Call& call) -> Status {
    return forFloat(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      alongPairs(call.operand(0), call.operand(1), dim, call.allocate().mutableAs<T>().data(),
                 [=](int64_t n, auto x, auto y) {
                   return normOf(n, p, [&](int64_t k) { return x(k) - y(k) + eps; });
                 });
      return {};
    });
  });
}

constexpr KernelEntry kDistanceKernels[] = {
    {"aten.cdist.default", prepareCdist},
    {"aten._cdist_forward.default", prepareCdist},
    {"aten.pdist.default", preparePdist},
    {"aten._pdist_forward.default", preparePdist},
    {"aten.cosine_similarity.default", prepareCosine},
    {"aten.pairwise_distance.default", preparePairwise},
};

}  // namespace

std::span<const KernelEntry> distanceKernels() {
  return kDistanceKernels;
}

}  // namespace carina::aten
