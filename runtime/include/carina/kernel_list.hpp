// SPDX-License-Identifier: Apache-2.0
// Every kernel of this library by the names that programs use. A firmware's table picks from it at compile
// time, so that nothing but the kernels of its program is linked:
//   const Kernel kernels[] = {{"aten::clamp.out", kernelFunction("aten::clamp.out")}};
#pragma once

#include "carina/kernels.hpp"

namespace carina::rt {

inline constexpr Kernel kAllKernels[] = {
    {"aten::_to_copy.out", kernels::convertCopy},
    {"aten::clamp.out", kernels::clamp},
    {"aten::clone.out", kernels::convertCopy},
    {"aten::hardtanh.out", kernels::clamp},
    {"aten::permute_copy.out", kernels::permuteCopy},
    {"aten::relu.out", kernels::relu},
    {"aten::squeeze_copy.dim_out", kernels::convertCopy},
    {"aten::squeeze_copy.dims_out", kernels::convertCopy},
    {"aten::transpose_copy.int_out", kernels::transposeCopy},
    {"aten::unsqueeze_copy.out", kernels::convertCopy},
    {"aten::view_copy.out", kernels::viewCopy},
    {"cortex_m::dequantize_per_tensor.out", kernels::dequantizePerTensor},
    {"cortex_m::quantize_per_tensor.out", kernels::quantizePerTensor},
    {"dim_order_ops::_clone_dim_order.out", kernels::convertCopy},
    {"dim_order_ops::_to_dim_order_copy.out", kernels::convertCopy},
    {"executorch_prim::et_view.default", kernels::viewAlias},
    {"quantized_decomposed::dequantize_per_channel.out", kernels::dequantizePerChannel},
    {"quantized_decomposed::dequantize_per_tensor.out", kernels::dequantizePerTensor},
    {"quantized_decomposed::quantize_per_channel.out", kernels::quantizePerChannel},
    {"quantized_decomposed::quantize_per_tensor.out", kernels::quantizePerTensor},
};

/// Null when this library has no kernel of that name.
constexpr KernelFunction kernelFunction(const char* name) {
  for (const Kernel& kernel : kAllKernels) {
    size_t i = 0;
    while (kernel.name[i] == name[i] && name[i] != 0) ++i;
    if (kernel.name[i] == name[i]) return kernel.run;
  }
  return nullptr;
}

}  // namespace carina::rt
