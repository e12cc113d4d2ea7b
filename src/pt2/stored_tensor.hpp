// SPDX-License-Identifier: Apache-2.0
// A strided view of a storage, as archives store tensors.
#pragma once

#include <memory>

#include "base/budget.hpp"
#include "base/result.hpp"
#include "base/tensor.hpp"
#include "pt2/scalar_type.hpp"

namespace carina::pt2 {

/// Sizes, strides and offset are in elements and come from the file unchecked.
struct StoredTensor {
  const ScalarType* type = nullptr;
  Shape sizes, strides;
  int64_t offset = 0;
  ByteSpan storage;
  std::shared_ptr<const void> owner;  // keeps the storage alive
};

/// Memory budget for materialising the views of an archive of this size: with strides of 0, four bytes can
/// become any size, and any number of views can share a storage.
Budget viewBudget(uint64_t fileBytes);

/// The view as a dense row-major tensor: borrowed if the storage holds it as such, otherwise gathered, at the
/// expense of `budget`. Fails if the view reaches outside the storage, strides are negative, the type is
/// unsupported, a bool is neither 0 nor 1, or the budget is exhausted.
Result<Tensor> denseTensor(const StoredTensor& stored, Budget& budget);

}  // namespace carina::pt2
