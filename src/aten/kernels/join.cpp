// SPDX-License-Identifier: Apache-2.0
// Operators that assemble a tensor from regions of others: cat, stack, slice_scatter, pad, roll, tril.
#include <algorithm>

#include "aten/join_shapes.hpp"
#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/number.hpp"
#include "aten/kernels/strided_copy.hpp"
#include "aten/movement_rules.hpp"

namespace carina::aten {
namespace {

/// Concatenation along `dim` of the result; each operand contributes a contiguous slab per outer index.
Kernel concatenation(int64_t dim) {
  return [dim](Call& call) -> Status {
    const DType dtype = call.type().dtype;
    const Shape& shape = call.type().shape;
    int64_t outer = 1;
    for (int64_t d = 0; d < dim; ++d) outer *= shape[static_cast<size_t>(d)];
    std::byte* out = call.allocate().mutableBytes().data();
    const int64_t pitch = outer ? call.result().numBytes() / outer : 0;
    int64_t offset = 0;
    for (size_t i = 0; i < call.numOperands(); ++i) {
      const Tensor part = castTo(call.operand(i), dtype);
      if (part.numElements() == 0 || outer == 0) continue;
      const int64_t slab = part.numBytes() / outer;
      const std::byte* in = part.bytes().data();
      for (int64_t o = 0; o < outer; ++o) std::copy_n(in + o * slab, slab, out + o * pitch + offset);
      offset += slab;
    }
    return {};
  };
}

Result<Kernel> prepareCat(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.result()->rank()));
  return concatenation(dim);
}
Result<Kernel> prepareStack(const ir::Node& node) {
  CARINA_TRY(const int64_t dim, wrapDim(Arguments(node).integer("dim"), node.result()->rank()));
  return concatenation(dim);
}

/// hstack, vstack, dstack, column_stack: reshaping does not change the bytes, so the operands are
/// concatenated as they are.
Result<Kernel> prepareJoinStack(const ir::Node& node) {
  CARINA_TRY(const JoinPlan plan, joinPlan(node));
  return concatenation(plan.dim);
}

/// slice_scatter and select_scatter: self with a region replaced.
Result<Kernel> prepareScatterRegion(const ir::Node& node) {
  CARINA_TRY(const Movement region, cut(node));
  return Kernel([region](Call& call) -> Status {
    Tensor source = castTo(call.operand(1), call.type().dtype);
    if (source.shape() != region.result) {
      Movement stretch{0, region.result, broadcastStrides(source.shape(), region.result), 0, region.result};
      source = stridedCopy(source, stretch);
    }
    stridedStore(call.copyOf(0), region, source);
    return {};
  });
}

enum class PadMode : uint8_t { Constant, Reflect, Replicate, Circular };

/// The source index, in [0, size), of position `at`, which counts from the first unpadded element; -1 outside
/// (constant padding).
int64_t padSource(int64_t at, int64_t size, PadMode mode) {
  switch (mode) {
    case PadMode::Constant:
      return at >= 0 && at < size ? at : -1;
    case PadMode::Reflect:
      return (size - 1) - std::abs((size - 1) - std::abs(at));
    case PadMode::Replicate:
      return std::clamp<int64_t>(at, 0, size - 1);
    case PadMode::Circular:
      return (at % size + size) % size;
  }
  return -1;
}

Result<PadMode> padMode(const ir::Node& node) {
  const std::string_view name = node.opName();
  if (name.starts_with("aten.reflection")) return PadMode::Reflect;
  if (name.starts_with("aten.replication")) return PadMode::Replicate;
  const std::string mode = Arguments(node).text("mode", "constant");
  if (mode == "constant") return PadMode::Constant;
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "replicate") return PadMode::Replicate;
  if (mode == "circular") return PadMode::Circular;
  return fail(Code::UnsupportedForm, "padding mode '{}' is not known", mode);
}

Result<Kernel> preparePad(const ir::Node& node) {
  const Arguments a(node);
  CARINA_TRY(const PadMode mode, padMode(node));
  const ir::Ints pads = a.ints(a.has("pad") ? "pad" : "padding");
  const ir::Attribute& value = a.at("value");
  // The source index of every output index, per dimension.
  const Shape &in = node.operand(0)->shape(), &out = node.result()->shape();
  std::vector<std::vector<int64_t>> sources(in.size());
  for (size_t d = 0; d < in.size(); ++d) {
    const size_t fromEnd = in.size() - 1 - d;
    const int64_t before = 2 * fromEnd < pads.size() ? pads[2 * fromEnd] : 0;
    const int64_t after = 2 * fromEnd < pads.size() ? pads[2 * fromEnd + 1] : 0;
    if (mode == PadMode::Reflect && std::max(before, after) >= in[d] && std::max(before, after) > 0) {
      return fail(Code::NoResult, "cannot reflect {} elements of a dimension of {}", std::max(before, after),
                  in[d]);
    }
    if (mode == PadMode::Circular && std::max(before, after) > in[d])
      return fail(Code::NoResult, "circular padding wraps more than once");
    if (mode == PadMode::Replicate && in[d] == 0)
      return fail(Code::NoResult, "an empty dimension cannot be padded with its edge");
    for (int64_t i = 0; i < out[d]; ++i) sources[d].push_back(padSource(i - before, in[d], mode));
  }
  return Kernel([=, sources = std::move(sources)](Call& call) -> Status {
    const Tensor& input = call.operand(0);
    const DType dtype = call.type().dtype;
    const Tensor fill =
        std::holds_alternative<std::monostate>(value) ? Tensor::zeros(dtype, {}) : numberTensor(value, dtype);
    return forSize(dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      const T* from = input.as<T>().data();
      const T constant = fill.as<T>()[0];
      T* to = call.allocate().mutableAs<T>().data();
      const Shape strides = rowMajorStrides(input.shape());
      const size_t rank = sources.size();
      if (call.result().numElements() == 0) return {};
      Shape index(rank, 0);
      while (true) {
        int64_t base = 0;
        bool outside = false;
        for (size_t d = 0; d + 1 < rank; ++d) {
          const int64_t s = sources[d][static_cast<size_t>(index[d])];
          outside |= s < 0;
          base += s * strides[d];
        }
        if (rank == 0) {
          *to = *from;
          return {};
        }
        for (int64_t s : sources[rank - 1]) *to++ = outside || s < 0 ? constant : from[base + s];
        size_t d = rank - 1;
        while (d-- > 0) {
          if (++index[d] < static_cast<int64_t>(sources[d].size())) break;
          index[d] = 0;
        }
        if (d == static_cast<size_t>(-1)) return {};
      }
    });
  });
}

/// out[(i + shift) mod n] = in[i] per dimension; without dimensions, the flattened tensor is rolled.
Result<Kernel> prepareRoll(const ir::Node& node) {
  const Arguments a(node);
  const ir::Ints shifts = a.ints("shifts"), dims = a.ints("dims");
  Shape shape = node.operand(0)->shape();
  if (dims.empty()) shape = {numElements(shape)};
  if (!dims.empty() && dims.size() != shifts.size())
    return fail(Code::NoResult, "roll: {} shifts do not match {} dimensions", shifts.size(), dims.size());
  if (shifts.empty()) return fail(Code::NoResult, "roll: expected at least one shift");
  std::vector<int64_t> shift(shape.size(), 0);
  for (size_t i = 0; i < shifts.size(); ++i) {
    CARINA_TRY(const int64_t dim, wrapDim(dims.empty() ? 0 : dims[i], static_cast<int64_t>(shape.size())));
    if (shape.empty()) continue;
    const auto d = static_cast<size_t>(dim);
    if (shape[d] > 0) shift[d] = ((shift[d] + shifts[i] % shape[d]) % shape[d] + shape[d]) % shape[d];
  }
  return Kernel([=](Call& call) -> Status {
    Tensor current = call.operand(0).reshaped(shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shift[d] == 0) continue;
      Tensor next = Tensor::uninitialized(current.dtype(), shape);
      Movement head = identityMovement(shape),
               tail = head;  // where the first n - shift and the last `shift` elements are written
      Movement headFrom = head, tailFrom = tail;
      head.shape[d] = headFrom.shape[d] = shape[d] - shift[d];
      tail.shape[d] = tailFrom.shape[d] = shift[d];
      head.offset = shift[d] * head.strides[d];
      tailFrom.offset = (shape[d] - shift[d]) * tail.strides[d];
      headFrom.result = headFrom.shape;
      tailFrom.result = tailFrom.shape;
      stridedStore(next, head, stridedCopy(current, headFrom));
      stridedStore(next, tail, stridedCopy(current, tailFrom));
      current = std::move(next);
    }
    call.result() = current.reshaped(call.type().shape);
    return {};
  });
}

/// Keeps j <= i + k (tril) or j >= i + k (triu) of the last two dimensions.
template <bool kLower>
Result<Kernel> prepareTriangle(const ir::Node& node) {
  const int64_t diagonal = Arguments(node).integer("diagonal");
  if (node.operand(0)->rank() < 2) return fail(Code::InvalidOperator, "tril and triu take matrices");
  return Kernel([=](Call& call) -> Status {
    Tensor& result = call.copyOf(0);
    const int64_t rows = result.dim(result.rank() - 2), columns = result.dim(result.rank() - 1);
    const int64_t batch = rows * columns > 0 ? result.numElements() / (rows * columns) : 0;
    return forSize(result.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      T* out = result.mutableAs<T>().data();
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < columns; ++j, ++out) {
            if (kLower ? j > i + diagonal : j < i + diagonal) *out = T{0};
          }
        }
      }
      return {};
    });
  });
}

constexpr KernelEntry kJoinKernels[] = {
    {"aten.cat.default", prepareCat},
    {"aten.stack.default", prepareStack},
    {"aten.hstack.default", prepareJoinStack},
    {"aten.vstack.default", prepareJoinStack},
    {"aten.dstack.default", prepareJoinStack},
    {"aten.column_stack.default", prepareJoinStack},
    {"aten.slice_scatter.default", prepareScatterRegion},
    {"aten.select_scatter.default", prepareScatterRegion},
    {"aten.constant_pad_nd.default", preparePad},
    {"aten.pad.default", preparePad},
    {"aten.reflection_pad1d.default", preparePad},
    {"aten.reflection_pad2d.default", preparePad},
    {"aten.reflection_pad3d.default", preparePad},
    {"aten.replication_pad1d.default", preparePad},
    {"aten.replication_pad2d.default", preparePad},
    {"aten.replication_pad3d.default", preparePad},
    {"aten.roll.default", prepareRoll},
    {"aten.tril.default", prepareTriangle<true>},
    {"aten.triu.default", prepareTriangle<false>},
};

}  // namespace

std::span<const KernelEntry> joinKernels() {
  return kJoinKernels;
}

}  // namespace carina::aten
