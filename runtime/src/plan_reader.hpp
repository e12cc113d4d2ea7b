// SPDX-License-Identifier: Apache-2.0
// One method of a program as stored in the file, with every index, size and offset that execution relies on
// verified.
#pragma once

#include "carina/backend.hpp"
#include "carina/program.hpp"
#include "carina/value.hpp"

namespace carina::rt {

class PlanReader {
 public:
  /// Verifies method `index`; afterwards the accessors below see verified data only. Charges the program's
  /// walker for everything that it and the accessors visit; the caller has called beginWork().
  Status open(const Program& program, uint32_t index);
  /// Only what poolCount() and poolBytes() need.
  Status openPools(const Program& program, uint32_t index);

  FbTable plan;
  FbVector values, inputs, outputs, chains, operators, delegates, pools;

  /// Value `i`; planned tensors point into `memory` (pool i is memory id i + 1), or nowhere if it is empty.
  /// `named` resolves tensors in other files; without it they are checked but have no data.
  Status value(uint32_t i, Span<MutableBytes> memory, const NamedData* named, Value* value) const;
  Text delegateId(uint32_t i) const { return plan.tableAt(delegates, i).string(0); }
  Status delegateBlob(uint32_t i, Bytes* blob) const;
  uint32_t poolCount() const { return pools.count > 0 ? pools.count - 1 : 0; }
  size_t poolBytes(uint32_t pool) const { return static_cast<size_t>(pools.i64(pool + 1)); }
  /// poolBytes() for a size that has not been verified yet.
  Status checkPool(uint32_t pool, size_t* bytes) const;

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
  Status checkMove(uint32_t to, uint32_t instruction) const;
  bool contains(const FbVector& indices, uint32_t value) const;
  /// Whether value `i` is a tensor that is stored in the program or in another file and never written.
  bool isConstant(uint32_t i) const;
  bool isTensor(int64_t value) const;
  /// Steps of verification, see Walker::charge().
  Status charge(size_t steps) const;
  Status chargeSearch(size_t nameBytes) const;
  Status chargeBlob(const Bytes& blob) const;

  const Program* program_ = nullptr;
};

}  // namespace carina::rt
