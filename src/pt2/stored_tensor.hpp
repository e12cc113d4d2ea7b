// SPDX-License-Identifier: Apache-2.0
// A strided view of a storage, as archives keep tensors.
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

/// What the views of an archive of so many bytes may take when they are written out: strides of 0 make any
/// size of four bytes, and any number of views can share a storage.
Budget viewBudget(uint64_t fileBytes);

/// The view as a dense row-major tensor: borrowed where the storage holds it so, otherwise gathered, at the
/// expense of `budget`. Fails when the view reaches outside the storage, strides are negative, the type is
/// unsupported, a bool is neither 0 nor 1, or the budget is spent.
Result<Tensor> denseTensor(const StoredTensor& stored, Budget& budget);

}  // namespace carina::pt2
