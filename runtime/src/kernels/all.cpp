// SPDX-License-Identifier: Apache-2.0
// The whole list as a table.
#include "carina/kernel_list.hpp"

namespace carina::rt {

KernelTable allKernels() {
  return KernelTable(kAllKernels);
}

}  // namespace carina::rt
