// SPDX-License-Identifier: Apache-2.0
// One method of a program as it lies in the file, verified: every index, size and offset that execution
// relies on.
#pragma once

#include "carina/backend.hpp"
#include "carina/program.hpp"
#include "carina/value.hpp"

namespace carina::rt {

class PlanReader {
 public:
  /// Verifies method `index`. Afterwards the accessors below only see what was checked.
  Status open(const Program& program, uint32_t index);

  FbTable plan;
  FbVector values, inputs, outputs, chains, operators, delegates, pools;

  /// Value `i`; planned tensors point into `memory` (pool i is memory id i + 1), or nowhere when it is empty.
  /// `named` has the tensors that lie in other files; without it they are checked but have no data.
  Status value(uint32_t i, Span<MutableBytes> memory, const NamedData* named, Value* value) const;
  Text delegateId(uint32_t i) const { return plan.tableAt(delegates, i).string(0); }
  Status delegateBlob(uint32_t i, Bytes* blob) const;
  uint32_t poolCount() const { return pools.count > 0 ? pools.count - 1 : 0; }
  size_t poolBytes(uint32_t pool) const { return static_cast<size_t>(pools.i64(pool + 1)); }

 private:
  Status tensor(const FbTable& content, uint32_t i, Span<MutableBytes> memory, const NamedData* named,
                Tensor* tensor) const;
  Status tensorMemory(const FbTable& content, uint32_t i, Span<MutableBytes> memory, const NamedData* named,
                      Tensor* tensor) const;
  Status storedBytes(const FbTable& content, uint32_t i, const NamedData* named, const Tensor& tensor,
                     Bytes* stored, bool* hasStored) const;
  Status list(const FbTable& content, uint32_t i, uint32_t width, List* list) const;
  Status checkIndices(const FbVector& indices, uint32_t limit, const char* what) const;
  Status checkInstructions(const FbTable& chain) const;
  bool isTensor(int64_t value) const;

  const Program* program_ = nullptr;
};

}  // namespace carina::rt
