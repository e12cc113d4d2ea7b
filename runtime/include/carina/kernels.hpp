// SPDX-License-Identifier: Apache-2.0
// The CPU kernels of this library, one function per kind, under ExecuTorch's operator names. kernels/list.def
// lists names, arguments and functions; kernel_list.hpp builds firmware's tables from it.
//
// A call's arguments are those of the operator's out-variant schema in order, including keyword-only ones and
// outputs, then the return value again (the output, or a TensorList of the outputs). Absent optional
// arguments are Null. Kernels check every argument and return a Status; none of them uses temporary memory.
#pragma once

#include "carina/kernel.hpp"

namespace carina::rt {

namespace kernels {
#define KERNEL(function, name, arguments, aten) Status function(KernelContext& context);
#include "kernels/list.def"
#undef KERNEL
}  // namespace kernels

/// Static description of a kernel, for tools.
struct KernelInfo {
  const char* name;       // "aten::add.out"
  const char* arguments;  // "Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out"
  const char* aten;       // "aten.add.Tensor": the functional operator that it implements; empty if none
};

/// Descriptions of the kernels of allKernels(), in the same order.
Span<const KernelInfo> kernelInfos();
/// By full name ("aten::add.out"); null if there is none.
const KernelInfo* findKernelInfo(Text name);
/// Whether this library has a kernel for the operator as a program spells it ("aten::add", "out").
bool hasKernel(Text name, Text overload);

}  // namespace carina::rt
