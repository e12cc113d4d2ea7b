// SPDX-License-Identifier: Apache-2.0
// Look-ups by index or value: take, masked_scatter, index_fill, bucketize, searchsorted.
#include <algorithm>

#include "aten/kernels/cast.hpp"
#include "aten/kernels/dispatch.hpp"
#include "aten/kernels/fold.hpp"
#include "aten/kernels/kernel.hpp"
#include "aten/kernels/number.hpp"

namespace carina::aten {
namespace {

Result<int64_t> checkedIndex(int64_t raw, int64_t size) {
  const int64_t index = raw < 0 ? raw + size : raw;
  if (index < 0 || index >= size)
    return fail(Code::NoResult, "index {} is out of range for {} elements", raw, size);
  return index;
}

/// Reads elements of the flattened tensor.
Result<Kernel> prepareTake(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Tensor &self = call.operand(0), &index = call.operand(1);
    return forSize(self.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      const auto out = call.allocate().mutableAs<T>();
      for (size_t i = 0; i < out.size(); ++i) {
        CARINA_TRY(const int64_t at,
                   checkedIndex(index.integerAt(static_cast<int64_t>(i)), self.numElements()));
        out[i] = self.as<T>()[static_cast<size_t>(at)];
      }
      return {};
    });
  });
}

/// Writes consecutive elements of the source to the positions at which the mask is true.
Result<Kernel> prepareMaskedScatter(const ir::Node&) {
  return Kernel([](Call& call) -> Status {
    const Tensor &mask = call.operand(1), source = castTo(call.operand(2), call.type().dtype);
    if (mask.dtype() != DType::Bool) return fail(Code::WrongElementType, "the mask must be bool");
    const auto at = broadcastOffsets(mask.shape(), call.type().shape);
    return forSize(call.type().dtype, [&](auto tag) -> Status {
      using T = decltype(tag);
      const auto out = call.copyOf(0).mutableAs<T>();
      size_t next = 0;
      for (size_t i = 0; i < out.size(); ++i) {
        if (!mask.as<uint8_t>()[static_cast<size_t>(at[i])]) continue;
        if (next >= static_cast<size_t>(source.numElements()))
          return fail(Code::NoResult, "the mask selects more elements than the source has");
        out[i] = source.as<T>()[next++];
      }
      return {};
    });
  });
}

/// Sets whole rows along `dim` to one value.
Result<Kernel> prepareIndexFill(const ir::Node& node) {
  const Arguments a(node);
  CARINA_TRY(const int64_t dim, wrapDim(a.integer("dim"), node.operand(0)->rank()));
  const ir::Attribute& value = a.at("value");
  return Kernel([=](Call& call) -> Status {
    const Tensor& index = call.operand(1);
    const DType dtype = call.type().dtype;
    const Tensor fill = std::holds_alternative<std::monostate>(value) ? castTo(call.operand(2), dtype)
                                                                      : numberTensor(value, dtype);
    if (fill.numElements() != 1) return fail(Code::InvalidOperator, "index_fill takes one value");
    Tensor& result = call.copyOf(0);
    int64_t outer = 1, inner = 1;
    for (int64_t d = 0; d < result.rank(); ++d) {
      if (d != dim) (d < dim ? outer : inner) *= result.dim(d);
    }
    const int64_t size = result.rank() ? result.dim(dim) : 1;
    return forSize(result.dtype(), [&](auto tag) -> Status {
      using T = decltype(tag);
      T* out = result.mutableAs<T>().data();
      for (int64_t i = 0; i < index.numElements(); ++i) {
        CARINA_TRY(const int64_t row, checkedIndex(index.integerAt(i), size));
        for (int64_t o = 0; o < outer; ++o)
          std::fill_n(out + (o * size + row) * inner, inner, fill.as<T>()[0]);
      }
      return {};
    });
  });
}

/// Number of boundaries below the value, or with right=True not above it.
Result<Kernel> prepareSearch(const ir::Node& node) {
  const Arguments a(node);
  const bool sequenceFirst = node.opName().starts_with("aten.searchsorted");
  const bool right = a.boolean("right") || a.text("side") == "right";
  return Kernel([=](Call& call) -> Status {
    const Tensor &sequence = call.operand(sequenceFirst ? 0 : 1),
                 &values = call.operand(sequenceFirst ? 1 : 0);
    if (sequence.rank() != 1)
      return fail(Code::WrongElementType,
                  "the boundaries must have the type of the values, with one vector for each row");
    std::vector<double> sorted;
    for (int64_t i = 0; i < sequence.numElements(); ++i) sorted.push_back(sequence.realAt(i));
    Tensor& result = call.allocate();
    for (int64_t i = 0; i < values.numElements(); ++i) {
      const double value = values.realAt(i);
      const auto place = right ? std::upper_bound(sorted.begin(), sorted.end(), value)
                               : std::lower_bound(sorted.begin(), sorted.end(), value);
      result.setIntegerAt(i, place - sorted.begin());
    }
    return {};
  });
}

constexpr KernelEntry kSearchKernels[] = {
    {"aten.take.default", prepareTake},
    {"aten.masked_scatter.default", prepareMaskedScatter},
    {"aten.index_fill.int_Scalar", prepareIndexFill},
    {"aten.index_fill.int_Tensor", prepareIndexFill},
    {"aten.bucketize.Tensor", prepareSearch},
    {"aten.searchsorted.Tensor", prepareSearch},
};

}  // namespace

std::span<const KernelEntry> searchKernels() {
  return kSearchKernels;
}

}  // namespace carina::aten
