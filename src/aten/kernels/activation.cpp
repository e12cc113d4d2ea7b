// SPDX-License-Identifier: Apache-2.0
// Activation functions.
#include "aten/kernels/pointwise.hpp"

namespace carina::aten {
namespace {

template <typename T>
T sigmoidOf(T x) {
  return T{1} / (T{1} + std::exp(-x));
}
template <typename T>
T softplusOf(T x, double beta, double threshold) {
  const T scaled = x * static_cast<T>(beta);
  return scaled > static_cast<T>(threshold) ? x : std::log1p(std::exp(scaled)) / static_cast<T>(beta);
}
/// x > 0 ? scale * x : scale * alpha * expm1(x * inputScale)
Kernel eluKernel(double alpha, double scale, double inputScale) {
  return floatKernel([=](auto x) {
    using T = decltype(x);
    return x > T{0} ? x * static_cast<T>(scale)
                    : std::expm1(x * static_cast<T>(inputScale)) * static_cast<T>(alpha * scale);
  });
}

Result<Kernel> prepareRelu(const ir::Node&) {
  return numberKernel([](auto x) { return x < decltype(x){0} ? decltype(x){0} : x; });
}
/// min(max(x, low), high)
Kernel clampKernel(double low, double high) {
  return numberKernel([=](auto x) {
    using T = decltype(x);
    return clampTo(x, static_cast<T>(low), static_cast<T>(high));
  });
}
Result<Kernel> prepareRelu6(const ir::Node&) {
  return clampKernel(0, 6);
}
Result<Kernel> prepareHardtanh(const ir::Node& node) {
  const Arguments a(node);
  return clampKernel(a.real("min_val", -1), a.real("max_val", 1));
}
Result<Kernel> prepareLeakyRelu(const ir::Node& node) {
  const double slope = Arguments(node).real("negative_slope", 0.01);
  return floatKernel([=](auto x) { return x > decltype(x){0} ? x : x * static_cast<decltype(x)>(slope); });
}
Result<Kernel> prepareRrelu(const ir::Node& node) {
  const Arguments a(node);
  if (a.boolean("training"))
    return fail(Code::TrainingOnly, "rrelu draws random slopes in training: export the model in eval mode");
  const double slope = (a.real("lower", 0.125) + a.real("upper", 1.0 / 3)) / 2;
  return floatKernel([=](auto x) { return x > decltype(x){0} ? x : x * static_cast<decltype(x)>(slope); });
}
Result<Kernel> prepareElu(const ir::Node& node) {
  const Arguments a(node);
  return eluKernel(a.real("alpha", 1), a.real("scale", 1), a.real("input_scale", 1));
}
Result<Kernel> prepareSelu(const ir::Node&) {
  return eluKernel(1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}
Result<Kernel> prepareCelu(const ir::Node& node) {
  const double alpha = Arguments(node).real("alpha", 1);
  return eluKernel(alpha, 1, 1 / alpha);
}
Result<Kernel> prepareGelu(const ir::Node& node) {
  const std::string approximate = Arguments(node).text("approximate", "none");
  if (approximate == "tanh") {
    return floatKernel([](auto x) {
      using T = decltype(x);
      const T inner = static_cast<T>(0.79788456080286535588) * (x + static_cast<T>(0.044715) * x * x * x);
      return T{0.5} * x * (T{1} + std::tanh(inner));
    });
  }
  if (approximate != "none")
    return fail(Code::UnsupportedForm, "gelu approximation '{}' is not known", approximate);
  return floatKernel([](auto x) {
    using T = decltype(x);
    return T{0.5} * x * (T{1} + std::erf(x * static_cast<T>(0.70710678118654752440)));
  });
}
Result<Kernel> prepareSilu(const ir::Node&) {
  return floatKernel([](auto x) { return x / (decltype(x){1} + std::exp(-x)); });
}
Result<Kernel> prepareMish(const ir::Node&) {
  return floatKernel([](auto x) { return x * std::tanh(softplusOf(x, 1, 20)); });
}
Result<Kernel> prepareHardsigmoid(const ir::Node&) {
  return floatKernel([](auto x) {
    using T = decltype(x);
    return clampTo(x + T{3}, T{0}, T{6}) / T{6};
  });
}
Result<Kernel> prepareHardswish(const ir::Node&) {
  return floatKernel([](auto x) {
    using T = decltype(x);
    return x * clampTo(x + T{3}, T{0}, T{6}) / T{6};
  });
}
Result<Kernel> prepareSoftplus(const ir::Node& node) {
  const double beta = Arguments(node).real("beta", 1), threshold = Arguments(node).real("threshold", 20);
  return floatKernel([=](auto x) { return softplusOf(x, beta, threshold); });
}
Result<Kernel> prepareLogSigmoid(const ir::Node&) {
  return floatKernel(
      [](auto x) { return minimumOf(x, decltype(x){0}) - std::log1p(std::exp(-std::abs(x))); });
}
Result<Kernel> prepareHardshrink(const ir::Node& node) {
  const double lambda = Arguments(node).real("lambd", 0.5);
  return floatKernel([=](auto x) {
    using T = decltype(x);
    return x >= static_cast<T>(-lambda) && x <= static_cast<T>(lambda) ? T{0} : x;
  });
}
Result<Kernel> prepareSoftshrink(const ir::Node& node) {
  const double lambda = Arguments(node).real("lambd", 0.5);
  return floatKernel([=](auto x) {
    using T = decltype(x);
    const T l = static_cast<T>(lambda);
    return x > l ? x - l : x < -l ? x + l : x * T{0};
  });
}
Result<Kernel> prepareThreshold(const ir::Node& node) {
  const Arguments a(node);
  const double threshold = a.real("threshold"), value = a.real("value");
  return numberKernel([=](auto x) {
    using T = decltype(x);
    return x <= static_cast<T>(threshold) ? static_cast<T>(value) : x;
  });
}

/// a * sigmoid(b) of the two halves of a dimension.
Result<Kernel> prepareGlu(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim", -1), node.operand(0)->rank()));
  return Kernel([dim](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    int64_t inner = 1, outer = 1;
    for (int64_t d = 0; d < input.rank(); ++d) (d < dim ? outer : inner) *= input.dim(d);
    const int64_t half = inner / 2;
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* in = input.as<T>().data();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < half; ++i)
          out[o * half + i] = in[o * inner + i] * sigmoidOf(in[o * inner + half + i]);
      }
      return {};
    });
  });
}

Result<Kernel> preparePrelu(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Tensor &input = call.operand(0), &weight = call.operand(1);
    const int64_t count = weight.numElements();
    int64_t inner = 1;
    for (int64_t d = 2; d < input.rank(); ++d) inner *= input.dim(d);
    return forFloat(input.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const T *in = input.as<T>().data(), *slopes = weight.as<T>().data();
      const int64_t n = input.numElements();
      T* out = call.allocate().mutableAs<T>().data();
      for (int64_t i = 0; i < n; ++i) {
        const T slope = slopes[count == 1 ? 0 : i / inner % count];
        out[i] = in[i] > T{0} ? in[i] : in[i] * slope;
      }
      return {};
    });
  });
}

constexpr KernelEntry kActivationKernels[] = {
    {"aten.relu.default", prepareRelu},
    {"aten.relu6.default", prepareRelu6},
    {"aten.hardtanh.default", prepareHardtanh},
    {"aten.leaky_relu.default", prepareLeakyRelu},
    {"aten.rrelu.default", prepareRrelu},
    {"aten.elu.default", prepareElu},
    {"aten.selu.default", prepareSelu},
    {"aten.celu.default", prepareCelu},
    {"aten.gelu.default", prepareGelu},
    {"aten.silu.default", prepareSilu},
    {"aten.mish.default", prepareMish},
    {"aten.hardsigmoid.default", prepareHardsigmoid},
    {"aten.hardswish.default", prepareHardswish},
    {"aten.softplus.default", prepareSoftplus},
    {"aten.log_sigmoid.default", prepareLogSigmoid},
    {"aten.hardshrink.default", prepareHardshrink},
    {"aten.softshrink.default", prepareSoftshrink},
    {"aten.threshold.default", prepareThreshold},
    {"aten.glu.default", prepareGlu},
    {"aten.prelu.default", preparePrelu},
};

}  // namespace

std::span<const KernelEntry> activationKernels() {
  return kActivationKernels;
}

}  // namespace carina::aten
