// SPDX-License-Identifier: Apache-2.0
// Normalisation: batch norm with fixed or batch statistics, instance, layer, group and RMS norm.
#include <cmath>

#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"

namespace carina::aten {
namespace {

/// Mean and biased variance of n elements, two passes in double.
struct Moments {
  double mean = 0, variance = 0;
};
template <typename T>
Moments moments(const T* values, int64_t n) {
  Moments m;
  for (int64_t i = 0; i < n; ++i) m.mean += static_cast<double>(values[i]);
  m.mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(values[i]) - m.mean;
    m.variance += d * d;
  }
  m.variance /= static_cast<double>(n);
  return m;
}

double parameter(const Tensor* tensor, int64_t i, double otherwise) {
  return tensor ? tensor->realAt(i) : otherwise;
}

/// out = in * scale + shift over n elements; may be in place.
template <typename T>
void scaleShift(const T* in, T* out, int64_t n, double scale, double shift) {
  const T s = static_cast<T>(scale), h = static_cast<T>(shift);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] * s + h;
}

int64_t innerSize(const Tensor& input) {
  int64_t inner = 1;
  for (int64_t d = 2; d < input.rank(); ++d) inner *= input.dim(d);
  return inner;
}

/// Operands (input, weight, bias, mean, var); y = x * scale + shift per channel.
Result<Kernel> prepareBatchNorm(const ir::Node& node) {
  const Arguments a(node);
  const double eps = a.real("eps");
  const bool batchStatistics = a.boolean("training") || !node.operand(3) || !node.operand(4);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Tensor *weight = call.named(1), *bias = call.named(2), *mean = call.named(3),
                 *variance = call.named(4);
    const int64_t batch = input.dim(0), channels = input.dim(1), inner = innerSize(input);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      std::vector<double> scales(static_cast<size_t>(channels)), shifts(static_cast<size_t>(channels));
      for (int64_t c = 0; c < channels; ++c) {
        Moments m;
        if (batchStatistics) {
          std::vector<T> gathered;
          for (int64_t b = 0; b < batch; ++b) {
            const T* plane = in + (b * channels + c) * inner;
            gathered.insert(gathered.end(), plane, plane + inner);
          }
          m = moments(gathered.data(), static_cast<int64_t>(gathered.size()));
        } else {
          m = {mean->realAt(c), variance->realAt(c)};
        }
        const auto at = static_cast<size_t>(c);
        scales[at] = parameter(weight, c, 1) / std::sqrt(m.variance + eps);
        shifts[at] = parameter(bias, c, 0) - m.mean * scales[at];
      }
      T* out = call.reuseOrAllocate(0).mutableAs<T>().data();
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at = (b * channels + c) * inner;
          scaleShift(in + at, out + at, inner, scales[static_cast<size_t>(c)],
                     shifts[static_cast<size_t>(c)]);
        }
      }
      for (size_t i = 1; i < call.numResults(); ++i) call.allocate(i);  // empty statistics of the native form
      return {};
    });
  });
}

/// Normalises by the statistics of the batch; also returns mean and 1/std per channel.
Result<Kernel> prepareBatchStatistics(const ir::Node& node) {
  const double eps = Arguments(node).real("eps");
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Tensor *weight = call.named(1), *bias = call.named(2);
    const int64_t batch = input.dim(0), channels = input.dim(1), inner = innerSize(input);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate(0).mutableAs<T>().data();
      T *means = call.allocate(1).mutableAs<T>().data(), *inverses = call.allocate(2).mutableAs<T>().data();
      std::vector<T> gathered;
      for (int64_t c = 0; c < channels; ++c) {
        gathered.clear();
        for (int64_t b = 0; b < batch; ++b) {
          const T* plane = in + (b * channels + c) * inner;
          gathered.insert(gathered.end(), plane, plane + inner);
        }
        const Moments m = moments(gathered.data(), static_cast<int64_t>(gathered.size()));
        const double inverse = 1 / std::sqrt(m.variance + eps), scale = parameter(weight, c, 1) * inverse;
        for (int64_t b = 0; b < batch; ++b) {
          const int64_t at = (b * channels + c) * inner;
          scaleShift(in + at, out + at, inner, scale, parameter(bias, c, 0) - m.mean * scale);
        }
        means[c] = static_cast<T>(m.mean);
        inverses[c] = static_cast<T>(inverse);
      }
      return {};
    });
  });
}

/// Normalises by the statistics of each sample and channel.
Result<Kernel> prepareInstanceNorm(const ir::Node& node) {
  const Arguments a(node);
  const double eps = a.real("eps");
  if (!a.boolean("use_input_stats")) return prepareBatchNorm(node);
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Tensor *weight = call.named(1), *bias = call.named(2);
    const int64_t channels = input.dim(1), inner = innerSize(input), planes = input.dim(0) * channels;
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.reuseOrAllocate(0).mutableAs<T>().data();
      for (int64_t p = 0; p < planes; ++p) {
        const Moments m = moments(in + p * inner, inner);
        const double scale = parameter(weight, p % channels, 1) / std::sqrt(m.variance + eps);
        scaleShift(in + p * inner, out + p * inner, inner, scale,
                   parameter(bias, p % channels, 0) - m.mean * scale);
      }
      return {};
    });
  });
}

/// Normalises rows of the normalised dimensions; the native form also returns mean and 1/std.
Result<Kernel> prepareLayerNorm(const ir::Node& node) {
  const Arguments a(node);
  const double eps = a.real("eps", 1e-5);
  const int64_t row = numElements(a.ints("normalized_shape"));
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Tensor *weight = call.named(1), *bias = call.named(2);
    const int64_t rows = row ? input.numElements() / row : 0;
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      const T* w = weight ? weight->as<T>().data() : nullptr;
      const T* b = bias ? bias->as<T>().data() : nullptr;
      T* out = call.reuseOrAllocate(0).mutableAs<T>().data();
      T* means = call.numResults() > 1 ? call.allocate(1).mutableAs<T>().data() : nullptr;
      T* inverses = call.numResults() > 2 ? call.allocate(2).mutableAs<T>().data() : nullptr;
      for (int64_t r = 0; r < rows; ++r) {
        const Moments m = moments(in + r * row, row);
        const double inverse = 1 / std::sqrt(m.variance + eps);
        scaleShift(in + r * row, out + r * row, row, inverse, -m.mean * inverse);
        for (int64_t i = 0; i < row; ++i) {
          T& value = out[r * row + i];
          if (w) value *= w[i];
          if (b) value += b[i];
        }
        if (means) means[r] = static_cast<T>(m.mean);
        if (inverses) inverses[r] = static_cast<T>(inverse);
      }
      return {};
    });
  });
}

Result<Kernel> prepareGroupNorm(const ir::Node& node) {
  const Arguments a(node);
  const double eps = a.real("eps", 1e-5);
  const int64_t groups = a.integer(a.has("num_groups") ? "num_groups" : "group");
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Tensor *weight = call.named(1), *bias = call.named(2);
    const int64_t batch = input.dim(0), channels = input.dim(1), inner = innerSize(input),
                  perGroup = channels / groups;
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.reuseOrAllocate(0).mutableAs<T>().data();
      T* means = call.numResults() > 1 ? call.allocate(1).mutableAs<T>().data() : nullptr;
      T* inverses = call.numResults() > 2 ? call.allocate(2).mutableAs<T>().data() : nullptr;
      for (int64_t g = 0; g < batch * groups; ++g) {
        const Moments m = moments(in + g * perGroup * inner, perGroup * inner);
        const double inverse = 1 / std::sqrt(m.variance + eps);
        for (int64_t i = 0; i < perGroup; ++i) {
          const int64_t channel = g % groups * perGroup + i, at = (g * perGroup + i) * inner;
          const double scale = parameter(weight, channel, 1) * inverse;
          scaleShift(in + at, out + at, inner, scale, parameter(bias, channel, 0) - m.mean * scale);
        }
        if (means) means[g] = static_cast<T>(m.mean);
        if (inverses) inverses[g] = static_cast<T>(inverse);
      }
      return {};
    });
  });
}

/// x / sqrt(mean(x^2) + eps) * weight; eps defaults to the machine epsilon of the tensor's type.
Result<Kernel> prepareRmsNorm(const ir::Node& node) {
  const Arguments a(node);
  const std::optional<double> eps = a.given("eps") ? std::optional(a.real("eps")) : std::nullopt;
  const DType stored = node.operand(0)->dtype();
  const double machine = stored == DType::Float16    ? 0x1p-10
                         : stored == DType::BFloat16 ? 0x1p-7
                         : stored == DType::Float64  ? 0x1p-52
                                                     : 0x1p-23;
  const int64_t row = numElements(a.ints("normalized_shape"));
  return Kernel([=](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const Tensor* weight = call.named(1);
    const int64_t rows = row ? input.numElements() / row : 0;
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      const T* w = weight ? weight->as<T>().data() : nullptr;
      T* out = call.reuseOrAllocate(0).mutableAs<T>().data();
      for (int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (int64_t i = 0; i < row; ++i)
          squares += static_cast<double>(in[r * row + i]) * static_cast<double>(in[r * row + i]);
        const T scale =
            static_cast<T>(1 / std::sqrt(squares / static_cast<double>(row) + eps.value_or(machine)));
        for (int64_t i = 0; i < row; ++i) out[r * row + i] = in[r * row + i] * scale * (w ? w[i] : T{1});
      }
      return {};
    });
  });
}

constexpr KernelEntry kNormKernels[] = {
    {"aten.batch_norm.default", prepareBatchNorm},
    {"aten._native_batch_norm_legit_no_training.default", prepareBatchNorm},
    {"aten._native_batch_norm_legit.no_stats", prepareBatchStatistics},
    {"aten.instance_norm.default", prepareInstanceNorm},
    {"aten.layer_norm.default", prepareLayerNorm},
    {"aten.native_layer_norm.default", prepareLayerNorm},
    {"aten.group_norm.default", prepareGroupNorm},
    {"aten.native_group_norm.default", prepareGroupNorm},
    {"aten.rms_norm.default", prepareRmsNorm},
};

}  // namespace

std::span<const KernelEntry> normKernels() {
  return kNormKernels;
}

}  // namespace carina::aten
