// SPDX-License-Identifier: Apache-2.0
// The CPU kernels of this library, one function per kind, under ExecuTorch's operator names. kernels/list.def
// is the list: names, arguments, functions; kernel_list.hpp makes firmware's tables of it.
//
// A call's arguments are those of the operator's out-variant schema in order, keyword-only ones and outputs
// included, then what it returns once more (the output, or a TensorList of the outputs). Optional arguments
// that are absent are Null. Kernels check every argument and answer with a Status; none of them takes
// temporary memory.
#pragma once

#include "carina/kernel.hpp"

namespace carina::rt {

namespace kernels {
#define KERNEL(function, name, arguments, aten) Status function(KernelContext& context);
#include "kernels/list.def"
#undef KERNEL
}  // namespace kernels

/// What tools know of a kernel without calling it.
struct KernelInfo {
  const char* name;       // "aten::add.out"
  const char* arguments;  // "Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out"
  const char* aten;       // "aten.add.Tensor": the functional operator it serves; empty when there is none
};

/// What is known of the kernels of allKernels(), in the same order.
Span<const KernelInfo> kernelInfos();
/// By full name ("aten::add.out"); null when there is none.
const KernelInfo* findKernelInfo(Text name);
/// Whether this library serves the operator as a program spells it ("aten::add", "out").
bool hasKernel(Text name, Text overload);

}  // namespace carina::rt
