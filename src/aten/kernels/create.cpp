// SPDX-License-Identifier: Apache-2.0
// Tensor creation: full, zeros, arange, linspace, eye, and their _like and new_ forms.
#include <algorithm>
#include <cmath>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/number.hpp"

namespace carina::aten {
namespace {

/// The value to fill with: fill_value, s (scalar_tensor), 1 for ones*, otherwise 0 (also for empty*, whose
/// contents are unspecified).
Result<Kernel> prepareFull(const ir::Node& node) {
  const Arguments a(node);
  const bool ones = node.opName().find("ones") != std::string_view::npos;
  ir::Attribute value = int64_t{ones};
  if (a.given("fill_value")) value = a.at("fill_value");
  if (a.given("s")) value = a.at("s");
  return Kernel([value](Call& call) -> Status {
    call.result() = filled(call.type(), numberTensor(value, call.type().dtype));
    return {};
  });
}

Result<Kernel> prepareEye(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Shape& shape = call.type().shape;
    Tensor matrix = Tensor::zeros(DType::Int64, shape);
    int64_t* out = matrix.mutableAs<int64_t>().data();
    for (int64_t i = 0; i < std::min(shape[0], shape[1]); ++i) out[i * shape[1] + i] = 1;
    call.result() = castTo(matrix, call.type().dtype);
    return {};
  });
}

/// start + i * step, in int64 if all are integers, otherwise in double.
Result<Kernel> prepareArange(const ir::Node& node) {
  const Arguments a(node);
  const bool real = std::holds_alternative<double>(a.at("start")) ||
                    std::holds_alternative<double>(a.at("end")) ||
                    std::holds_alternative<double>(a.at("step"));
  const double start = a.real("start", 0), step = a.real("step", 1);
  const int64_t intStart = a.integer("start", 0), intStep = a.integer("step", 1);
  return Kernel([=](Call& call) -> Status {
    const int64_t n = call.type().shape[0];
    Tensor values = Tensor::uninitialized(real ? DType::Float64 : DType::Int64, {n});
    for (int64_t i = 0; i < n; ++i) {
      if (real) {
        values.mutableAs<double>()[static_cast<size_t>(i)] = start + static_cast<double>(i) * step;
      } else {
        values.mutableAs<int64_t>()[static_cast<size_t>(i)] = intStart + i * intStep;
      }
    }
    call.result() = castTo(values, call.type().dtype);
    return {};
  });
}

/// Steps from the start in the first half and back from the end in the second, in float32.
Result<Kernel> prepareLinspace(const ir::Node& node) {
  const Arguments a(node);
  const auto start = static_cast<float>(a.real("start")), end = static_cast<float>(a.real("end"));
  return Kernel([=](Call& call) -> Status {
    const int64_t n = call.type().shape[0];
    Tensor values = Tensor::uninitialized(DType::Float32, {n});
    const auto out = values.mutableAs<float>();
    const float step = n > 1 ? (end - start) / static_cast<float>(n - 1) : 0.0f;
    for (int64_t i = 0; i < n; ++i) {
      out[static_cast<size_t>(i)] = i < n / 2 || n == 1 ? start + static_cast<float>(i) * step
                                                        : end - static_cast<float>(n - 1 - i) * step;
    }
    call.result() = castTo(values, call.type().dtype);
    return {};
  });
}

/// Assertions that the exporter made about types and devices held at export.
Result<Kernel> prepareNothing(const ir::Node&) {
  return Kernel([](Call&) -> Status { return {}; });
}

constexpr KernelEntry kCreateKernels[] = {
    {"aten.full.default", prepareFull},
    {"aten.zeros.default", prepareFull},
    {"aten.ones.default", prepareFull},
    {"aten.empty.memory_format", prepareFull},
    {"aten.empty_strided.default", prepareFull},
    {"aten.empty_permuted.default", prepareFull},
    {"aten.scalar_tensor.default", prepareFull},
    {"aten.full_like.default", prepareFull},
    {"aten.zeros_like.default", prepareFull},
    {"aten.ones_like.default", prepareFull},
    {"aten.empty_like.default", prepareFull},
    {"aten.new_full.default", prepareFull},
    {"aten.new_zeros.default", prepareFull},
    {"aten.new_ones.default", prepareFull},
    {"aten.new_empty.default", prepareFull},
    {"aten.eye.default", prepareEye},
    {"aten.eye.m", prepareEye},
    {"aten.arange.default", prepareArange},
    {"aten.arange.start", prepareArange},
    {"aten.arange.start_step", prepareArange},
    {"aten.linspace.default", prepareLinspace},
    {"aten._assert_tensor_metadata.default", prepareNothing},
};

}  // namespace

std::span<const KernelEntry> createKernels() {
  return kCreateKernels;
}

}  // namespace carina::aten
