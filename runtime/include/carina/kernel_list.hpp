// SPDX-License-Identifier: Apache-2.0
// All kernels of this library under the names that programs use. A firmware's table selects from it at
// compile time, so that only the kernels of its program are linked:
//   const Kernel kernels[] = {{"aten::clamp.out", kernelFunction("aten::clamp.out")}};
#pragma once

#include "carina/kernels.hpp"

namespace carina::rt {

inline constexpr Kernel kAllKernels[] = {
#define KERNEL(function, name, arguments, aten) {name, kernels::function},
#include "kernels/list.def"
#undef KERNEL
};

/// Null if this library has no kernel of that name.
constexpr KernelFunction kernelFunction(const char* name) {
  for (const Kernel& kernel : kAllKernels) {
    size_t i = 0;
    while (kernel.name[i] == name[i] && name[i] != 0) ++i;
    if (kernel.name[i] == name[i]) return kernel.run;
  }
  return nullptr;
}

}  // namespace carina::rt
