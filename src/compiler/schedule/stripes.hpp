// SPDX-License-Identifier: Apache-2.0
// Stripes: operations on some rows of a feature map, and the order in which the passes of a cascade process
// them. A cascade runs consecutive passes stripe by stripe, so that maps between them only hold the rows that
// are still needed: rolling buffers, in which row y is at position y modulo the rows held. Nothing is
// computed twice.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "npu/isa/operation.hpp"

namespace carina::compiler {

/// Rows [begin, end) of a pass's OFM: one operation.
struct Stripe {
  int32_t pass = 0, begin = 0, end = 0;

  bool operator==(const Stripe&) const = default;
};

/// Number of rows in each map's rolling buffer; 0: the map is held whole.
struct HeldRows {
  int32_t ifm = 0, ifm2 = 0, ofm = 0;
};

/// Rows of the IFM (`second`: IFM2) that rows [begin, end) of the OFM need.
struct RowRange {
  int32_t begin = 0, end = 0;
};
RowRange inputRows(const npu::KernelOperation& op, bool second, int32_t begin, int32_t end);

/// Whether an operation can be split into stripes of rows at all.
bool canStripe(const npu::KernelOperation& op);

/// Narrows `op` to rows [begin, end) of its OFM. Bases are those of the whole maps or of their rolling
/// buffers.
void takeRows(npu::KernelOperation& op, int32_t begin, int32_t end, const HeldRows& held);

/// A pass of a cascade as input of the planner.
struct StripedPass {
  const npu::KernelOperation* operation = nullptr;  // whole
  /// Passes of the same cascade that produce IFM and IFM2, as indices into the cascade; -1: from outside.
  int32_t ifmProducer = -1, ifm2Producer = -1;
  /// The pass before it that writes other parts of the same rows of a map; who reads this pass's result needs
  /// that one's as well.
  int32_t joined = -1;
};

struct StripePlan {
  std::vector<Stripe> stripes;  // in order; pass: index into the cascade
  std::vector<int32_t>
      held;  // per pass: rows of its OFM that are alive at the same time; equal for joined ones
};

/// Computes `rows` rows of the last pass at a time; each earlier pass runs only as far ahead as that needs.
/// Nothing if a stripe would see padding only.
std::optional<StripePlan> planStripes(std::span<const StripedPass> passes, int32_t rows);

}  // namespace carina::compiler
