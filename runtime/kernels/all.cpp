// SPDX-License-Identifier: Apache-2.0
// Tables of all kernels, for hosts; firmware selects its kernels from the list at compile time.
#include "carina/kernel_list.hpp"

namespace carina::rt {
namespace {

constexpr KernelInfo kInfos[] = {
#define KERNEL(function, name, arguments, aten) {name, arguments, aten},
#include "kernels/list.def"
#undef KERNEL
};

}  // namespace

KernelTable allKernels() {
  return KernelTable(kAllKernels);
}

Span<const KernelInfo> kernelInfos() {
  return Span<const KernelInfo>(kInfos);
}

const KernelInfo* findKernelInfo(Text name) {
  for (const KernelInfo& info : kInfos) {
    if (equals(name, info.name)) return &info;
  }
  return nullptr;
}

bool hasKernel(Text name, Text overload) {
  return findKernel(allKernels(), name, overload) != nullptr;
}

}  // namespace carina::rt
