// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "aten/kernels/kernel.hpp"

namespace carina::aten {

Prepare findKernel(std::string_view op) {
  static const std::unordered_map<std::string_view, Prepare> index = [] {
    std::unordered_map<std::string_view, Prepare> map;
    for (const auto table :
         {unaryKernels(),     activationKernels(), binaryKernels(),   selectionKernels(), reduceKernels(),
          varianceKernels(),  scanKernels(),       softmaxKernels(),  movementKernels(),  joinKernels(),
          indexKernels(),     createKernels(),     castKernels(),     quantKernels(),     matmulKernels(),
          convKernels(),      poolKernels(),       normKernels(),     resizeKernels(),    attentionKernels(),
          recurrentKernels(), einsumKernels(),     distanceKernels(), windowKernels(),    orderKernels(),
          searchKernels()}) {
      for (const KernelEntry& entry : table) map.emplace(entry.op, entry.prepare);
    }
    return map;
  }();
  const auto it = index.find(op);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace carina::aten
