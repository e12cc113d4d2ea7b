// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax over one dimension.
#include <cmath>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

template <bool kLog>
Result<Kernel> prepareSoftmax(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.operand(0)->rank()));
  const bool safe = node.opName() == "aten._safe_softmax.default";
  return Kernel([=](Call& call) -> Status {
    const Tensor input = castTo(call.operand(0), call.type().dtype);
    int64_t outer = 1, size = 1, inner = 1;
    for (int64_t d = 0; d < input.rank(); ++d) (d < dim ? outer : d == dim ? size : inner) *= input.dim(d);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const T* x = in + o * size * inner + i;
          T* y = out + o * size * inner + i;
          T high = -std::numeric_limits<T>::infinity();
          for (int64_t k = 0; k < size; ++k) high = x[k * inner] > high ? x[k * inner] : high;
          double sum = 0;
          for (int64_t k = 0; k < size; ++k) {
            const T e = std::exp(x[k * inner] - high);
            sum += static_cast<double>(e);
            y[k * inner] = e;
          }
          const T log = static_cast<T>(std::log(sum)), inverse = static_cast<T>(1 / sum);
          for (int64_t k = 0; k < size; ++k) {
            if constexpr (kLog) {
              y[k * inner] = x[k * inner] - high - log;
            } else {
              y[k * inner] =
                  safe && high == -std::numeric_limits<T>::infinity() ? T{0} : y[k * inner] * inverse;
            }
          }
        }
      }
      return {};
    });
  });
}

constexpr KernelEntry kSoftmaxKernels[] = {
    {"aten.softmax.int", prepareSoftmax<false>},           {"aten._softmax.default", prepareSoftmax<false>},
    {"aten._safe_softmax.default", prepareSoftmax<false>}, {"aten.log_softmax.int", prepareSoftmax<true>},
    {"aten._log_softmax.default", prepareSoftmax<true>},
};

}  // namespace

std::span<const KernelEntry> softmaxKernels() {
  return kSoftmaxKernels;
}

}  // namespace carina::aten
