// SPDX-License-Identifier: Apache-2.0
// Copies that change element type, dimension order, or add and drop dimensions of size 1: (self, ..., out).
#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {

Status convertCopy(KernelContext& context) {
  // These operators differ only in arguments that the output's type and dimension order imply.
  Call call(context, context.count() < 2 ? 2 : context.count());
  const Tensor* input = call.tensor(0);
  Tensor* output = call.output(context.count() - 1);
  if (!call.ok()) return call.status();
  size_t from[kMaxRank], to[kMaxRank];
  strides(*input, from);
  strides(*output, to);
  Region region;
  uint32_t i = 0, k = 0;
  for (;;) {
    while (i < input->rank && input->sizes[i] == 1) ++i;
    while (k < output->rank && output->sizes[k] == 1) ++k;
    if (i == input->rank || k == output->rank) break;
    if (input->sizes[i] != output->sizes[k]) return shapesDiffer();
    region.add(static_cast<size_t>(input->sizes[i]), static_cast<ptrdiff_t>(from[i]),
               static_cast<ptrdiff_t>(to[k]));
    ++i;
    ++k;
  }
  if (i != input->rank || k != output->rank) return shapesDiffer();
  region.copy(*input, 0, *output, 0);
  return Status{};
}

}  // namespace carina::rt::kernels
