// SPDX-License-Identifier: Apache-2.0
#include "pt2/stored_tensor.hpp"

#include <cstring>

namespace carina::pt2 {
namespace {

/// Whether the elements follow each other in row-major order; strides of dimensions of size 1 do not matter.
bool isDense(const StoredTensor& stored) {
  int64_t expected = 1;
  for (size_t d = stored.sizes.size(); d-- > 0;) {
    if (stored.sizes[d] == 1) continue;
    if (stored.strides[d] != expected) return false;
    expected *= stored.sizes[d];
  }
  return true;
}

/// Index of the last element of the view; empty on overflow.
std::optional<int64_t> lastIndex(const StoredTensor& stored) {
  std::optional<int64_t> last = stored.offset;
  for (size_t d = 0; d < stored.sizes.size() && last; ++d) {
    const auto reach = checkedMul(stored.sizes[d] - 1, stored.strides[d]);
    last = reach ? checkedAdd(*last, *reach) : std::nullopt;
  }
  return last;
}

Tensor gather(const StoredTensor& stored, DType dtype) {
  Tensor tensor = Tensor::uninitialized(dtype, stored.sizes);
  const auto size = static_cast<size_t>(dtypeSize(dtype));
  std::byte* to = tensor.mutableBytes().data();
  Shape index(stored.sizes.size(), 0);
  int64_t at = stored.offset;
  for (int64_t i = 0; i < tensor.numElements(); ++i, to += size) {
    std::memcpy(to, stored.storage.data() + static_cast<size_t>(at) * size, size);
    for (size_t d = index.size(); d-- > 0;) {
      at += stored.strides[d];
      if (++index[d] < stored.sizes[d]) break;
      at -= stored.strides[d] * stored.sizes[d];
      index[d] = 0;
    }
  }
  return tensor;
}

Result<Tensor> denseView(const StoredTensor& stored, DType dtype, Budget& budget) {
  const int64_t size = dtypeSize(dtype);
  const auto available = static_cast<int64_t>(stored.storage.size()) / size;
  if (static_cast<int64_t>(stored.storage.size()) % size != 0) {
    return fail(Code::Damaged, "its storage of {} bytes is not a multiple of the element size {}",
                stored.storage.size(), size);
  }
  if (stored.strides.size() != stored.sizes.size()) {
    return fail(Code::Damaged, "has {} sizes but {} strides", stored.sizes.size(), stored.strides.size());
  }
  if (stored.offset < 0) return fail(Code::Damaged, "starts at the negative offset {}", stored.offset);
  for (int64_t stride : stored.strides) {
    if (stride < 0) return fail(Code::Damaged, "has the negative stride {}", stride);
  }
  const auto count = checkedNumElements(stored.sizes);
  if (!count) return fail(Code::Damaged, "has the impossible shape {}", shapeText(stored.sizes));
  if (*count == 0) return Tensor::zeros(dtype, stored.sizes);
  if (stored.storage.empty()) {
    return fail(Code::Damaged, "has no values: the archive holds an empty storage for shape {}",
                shapeText(stored.sizes))
        .withRemedy("The program was exported with fake tensors; load the weights before export.");
  }
  const auto last = lastIndex(stored);
  if (!last || *last >= available) {
    return fail(Code::Damaged, "of shape {} at offset {} reaches outside its storage of {} elements",
                shapeText(stored.sizes), stored.offset, available);
  }
  const auto bytes = checkedMul(*count, size);
  const bool dense = isDense(stored);
  // Bools are checked byte by byte.
  if (!bytes || ((!dense || dtype == DType::Bool) && !budget.take(static_cast<uint64_t>(*bytes)))) {
    return fail(Code::Excessive,
                "of shape {} is a view of {} bytes; such views would take too much memory together",
                shapeText(stored.sizes), stored.storage.size())
        .withRemedy(
            "Give parameters and buffers their own storage (tensor.contiguous()) before export, or expand "
            "them in forward().");
  }
  if (dense) {
    const auto view =
        stored.storage.subspan(static_cast<size_t>(stored.offset * size), static_cast<size_t>(*bytes));
    return Tensor::borrow(dtype, stored.sizes, view, stored.owner);
  }
  return gather(stored, dtype);
}

}  // namespace

Budget viewBudget(uint64_t fileBytes) {
  return Budget::ofFile(fileBytes, uint64_t{32} << 20, 16);
}

Result<Tensor> denseTensor(const StoredTensor& stored, Budget& budget) {
  CARINA_TRY(const DType dtype, supportedType(*stored.type));
  CARINA_TRY(Tensor tensor, denseView(stored, dtype, budget));
  if (dtype == DType::Bool) {
    for (uint8_t value : tensor.as<uint8_t>()) {
      if (value > 1) return fail(Code::Damaged, "holds a bool that is neither 0 nor 1");
    }
  }
  return tensor;
}

}  // namespace carina::pt2
