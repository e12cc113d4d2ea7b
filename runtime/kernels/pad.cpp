// SPDX-License-Identifier: Apache-2.0
// Padding: constant, reflection and replication. Pad lists start with the last dimension: (before, after) of
// each; negative values crop.
#include "carina/kernels.hpp"
#include "region.hpp"

namespace carina::rt::kernels {
namespace {

struct Pads {
  int64_t before[kMaxRank] = {}, after[kMaxRank] = {};

  /// Also checks the output's sizes.
  Status read(const IntegerList& list, const Tensor& self, const Tensor& output) {
    if (list.count % 2 != 0 || list.count / 2 > self.rank) return outOfRange(1);
    if (self.rank != output.rank) return shapesDiffer();
    for (uint32_t i = 0; i < list.count / 2; ++i) {
      const uint32_t d = self.rank - 1 - i;
      before[d] = list.items[2 * i];
      after[d] = list.items[2 * i + 1];
      constexpr int64_t kMost = int64_t{1} << 40;
      if (before[d] < -kMost || before[d] > kMost || after[d] < -kMost || after[d] > kMost)
        return outOfRange(1);
    }
    for (uint32_t d = 0; d < self.rank; ++d) {
      if (output.sizes[d] != self.sizes[d] + before[d] + after[d]) return shapesDiffer();
    }
    return Status{};
  }
};

/// Copies element by element; in each of the last `dims` dimensions, `source` yields the input index.
Status padBy(KernelContext& context, uint32_t dims, int64_t (*source)(int64_t index, int64_t size),
             bool reflects) {
  Call call(context, 3);
  const Tensor* self = call.tensor(0);
  const IntegerList list = call.integers(1);
  Tensor* output = call.output(2);
  if (!call.ok()) return call.status();
  if (self->type != output->type) return typesDiffer();
  if (list.count != 2 * dims) return outOfRange(1);
  Pads pads;
  CARINA_RT_TRY(pads.read(list, *self, *output));
  if (output->elements() == 0) return Status{};
  if (self->elements() == 0) return shapesDiffer();
  const uint32_t outer = self->rank - dims;
  for (uint32_t d = outer; d < self->rank; ++d) {
    const int64_t most = reflects ? self->sizes[d] - 1 : INT32_MAX;
    if (pads.before[d] > most || pads.after[d] > most) return outOfRange(1);
  }
  size_t from[kMaxRank] = {}, to[kMaxRank] = {};
  strides(*self, from);
  strides(*output, to);
  // A box of the outer dimensions for each index of the inner ones, of which there are at most three.
  Region box;
  for (uint32_t d = 0; d < outer; ++d)
    box.add(static_cast<size_t>(self->sizes[d]), static_cast<ptrdiff_t>(from[d]),
            static_cast<ptrdiff_t>(to[d]));
  int32_t index[3] = {};
  for (;;) {
    size_t at = 0, into = 0;
    for (uint32_t i = 0; i < dims; ++i) {
      const uint32_t d = outer + i;
      at += static_cast<size_t>(source(index[i] - pads.before[d], self->sizes[d])) * from[d];
      into += static_cast<size_t>(index[i]) * to[d];
    }
    box.copy(*self, at, *output, into);
    uint32_t i = dims;
    for (; i > 0; --i) {
      if (++index[i - 1] < output->sizes[outer + i - 1]) break;
      index[i - 1] = 0;
    }
    if (i == 0) return Status{};
  }
}

int64_t reflected(int64_t index, int64_t size) {
  if (index < 0) index = -index;
  return index >= size ? 2 * (size - 1) - index : index;
}
int64_t replicated(int64_t index, int64_t size) {
  return index < 0 ? 0 : index >= size ? size - 1 : index;
}

}  // namespace

Status constantPad(KernelContext& context) {
  Call call(context, 4);
  const Tensor* self = call.tensor(0);
  const IntegerList list = call.integers(1);
  const Operand value = call.operand(2);
  Tensor* output = call.output(3);
  call.require(value.tensor == nullptr, typesDiffer());
  if (!call.ok()) return call.status();
  if (self->type != output->type) return typesDiffer();
  Pads pads;
  CARINA_RT_TRY(pads.read(list, *self, *output));
  fillWith(*output, value);
  size_t from[kMaxRank] = {}, to[kMaxRank] = {};
  strides(*self, from);
  strides(*output, to);
  Region region;
  size_t source = 0, target = 0;
  for (uint32_t d = 0; d < self->rank; ++d) {
    const int64_t cutBefore = pads.before[d] < 0 ? -pads.before[d] : 0;
    const int64_t cutAfter = pads.after[d] < 0 ? -pads.after[d] : 0;
    const int64_t kept = self->sizes[d] - cutBefore - cutAfter;
    if (kept <= 0) return Status{};  // nothing of the input is left
    source += static_cast<size_t>(cutBefore) * from[d];
    target += static_cast<size_t>(pads.before[d] > 0 ? pads.before[d] : 0) * to[d];
    region.add(static_cast<size_t>(kept), static_cast<ptrdiff_t>(from[d]), static_cast<ptrdiff_t>(to[d]));
  }
  region.copy(*self, source, *output, target);
  return Status{};
}

Status reflectionPad1d(KernelContext& context) {
  return padBy(context, 1, reflected, true);
}
Status reflectionPad2d(KernelContext& context) {
  return padBy(context, 2, reflected, true);
}
Status reflectionPad3d(KernelContext& context) {
  return padBy(context, 3, reflected, true);
}
Status replicationPad1d(KernelContext& context) {
  return padBy(context, 1, replicated, false);
}
Status replicationPad2d(KernelContext& context) {
  return padBy(context, 2, replicated, false);
}
Status replicationPad3d(KernelContext& context) {
  return padBy(context, 3, replicated, false);
}

}  // namespace carina::rt::kernels
