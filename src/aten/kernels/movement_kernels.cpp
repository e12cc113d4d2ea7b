// SPDX-License-Identifier: Apache-2.0
// Executes movements (movement.hpp): shares the bytes if only the shape changes, otherwise makes a strided
// copy.
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/strided_copy.hpp"
#include "aten/movement.hpp"

namespace carina::aten {
namespace {

Result<Kernel> prepareMovement(const ir::Node& node) {
  CARINA_TRY(auto moves, movements(node));
  CARINA_CHECK(moves.has_value(), "operator is in the kernel table as a movement but has no rule");
  return Kernel([moves = std::move(*moves)](Call& call) -> Status {
    for (size_t i = 0; i < moves.size(); ++i) {
      const Movement& move = moves[i];
      const Tensor& operand = call.operand(move.operand);
      if (move.isReshape(operand.shape())) {
        call.result(i) = operand.reshaped(move.result);
      } else {
        call.result(i) = stridedCopy(operand, move);
      }
    }
    return {};
  });
}

constexpr KernelEntry kMovementKernels[] = {
    {"aten.contiguous.default", prepareMovement},
    {"aten.clone.default", prepareMovement},
    {"aten.alias.default", prepareMovement},
    {"aten.lift_fresh_copy.default", prepareMovement},
    {"aten.dropout.default", prepareMovement},
    {"aten.feature_dropout.default", prepareMovement},
    {"aten.alpha_dropout.default", prepareMovement},
    {"aten.feature_alpha_dropout.default", prepareMovement},
    {"aten.view.default", prepareMovement},
    {"aten.reshape.default", prepareMovement},
    {"aten.view_as.default", prepareMovement},
    {"aten.reshape_as.default", prepareMovement},
    {"aten.flatten.using_ints", prepareMovement},
    {"aten.unflatten.int", prepareMovement},
    {"aten.permute.default", prepareMovement},
    {"aten.transpose.int", prepareMovement},
    {"aten.t.default", prepareMovement},
    {"aten.numpy_T.default", prepareMovement},
    {"aten.mT.default", prepareMovement},
    {"aten.movedim.int", prepareMovement},
    {"aten.movedim.intlist", prepareMovement},
    {"aten.squeeze.default", prepareMovement},
    {"aten.squeeze.dim", prepareMovement},
    {"aten.squeeze.dims", prepareMovement},
    {"aten.unsqueeze.default", prepareMovement},
    {"aten.expand.default", prepareMovement},
    {"aten.broadcast_to.default", prepareMovement},
    {"aten.expand_as.default", prepareMovement},
    {"aten.repeat.default", prepareMovement},
    {"aten.tile.default", prepareMovement},
    {"aten.repeat_interleave.self_int", prepareMovement},
    {"aten.split.Tensor", prepareMovement},
    {"aten.split.sizes", prepareMovement},
    {"aten.split_with_sizes.default", prepareMovement},
    {"aten.chunk.default", prepareMovement},
    {"aten.tensor_split.sections", prepareMovement},
    {"aten.tensor_split.indices", prepareMovement},
    {"aten.unbind.int", prepareMovement},
    {"aten.slice.Tensor", prepareMovement},
    {"aten.select.int", prepareMovement},
    {"aten.narrow.default", prepareMovement},
    {"aten.diagonal.default", prepareMovement},
    {"aten.unfold.default", prepareMovement},
    {"aten.pixel_shuffle.default", prepareMovement},
    {"aten.pixel_unshuffle.default", prepareMovement},
    {"aten.channel_shuffle.default", prepareMovement},
    {"aten.meshgrid.default", prepareMovement},
    {"aten.meshgrid.indexing", prepareMovement},
    {"aten.broadcast_tensors.default", prepareMovement},
    {"aten.flip.default", prepareMovement},
    {"aten.fliplr.default", prepareMovement},
    {"aten.flipud.default", prepareMovement},
    {"aten.diag.default", prepareMovement},
    {"aten.rot90.default", prepareMovement},
    {"aten.as_strided.default", prepareMovement},
};

}  // namespace

Tensor stridedCopy(const Tensor& from, const Movement& move) {
  Tensor result = Tensor::uninitialized(from.dtype(), move.result);
  const Status done = forSize(from.dtype(), [&](auto tag) -> Status {
    using T = decltype(tag);
    const T* in = from.as<T>().data() + move.offset;
    T* out = result.mutableAs<T>().data();
    walkStrided(move.shape, move.strides, [&](int64_t first, int64_t n, int64_t at, int64_t step) {
      if (step == 1) {
        std::copy_n(in + at, n, out + first);
      } else {
        for (int64_t i = 0; i < n; ++i) out[first + i] = in[at + i * step];
      }
    });
    return {};
  });
  CARINA_CHECK(done.ok(), "every element size can be copied");
  return result;
}

void stridedStore(Tensor& to, const Movement& move, const Tensor& from) {
  const Status done = forSize(to.dtype(), [&](auto tag) -> Status {
    using T = decltype(tag);
    T* out = to.mutableAs<T>().data() + move.offset;
    const T* in = from.as<T>().data();
    walkStrided(move.shape, move.strides, [&](int64_t first, int64_t n, int64_t at, int64_t step) {
      for (int64_t i = 0; i < n; ++i) out[at + i * step] = in[first + i];
    });
    return {};
  });
  CARINA_CHECK(done.ok(), "every element size can be copied");
}

std::span<const KernelEntry> movementKernels() {
  return kMovementKernels;
}

}  // namespace carina::aten
