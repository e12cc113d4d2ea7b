// SPDX-License-Identifier: Apache-2.0
// Sections: passes that hand each other their maps stripe by stripe, in rings of stripes in SRAM, so that
// maps which do not fit SRAM need not go through DRAM.
#pragma once

#include <span>

#include "ethosn/compiler/plan.hpp"

namespace carina::ethosn::compiler {

/// Of each pass of a section: what lies in SRAM already, and its weights as one stripe.
struct SectionMember {
  const Pass* pass = nullptr;
  Occupied occupied;                              // `others` are the same for all
  std::shared_ptr<const EncodedWeights> weights;  // none: no MCE
};

/// Whether the second pass can take the first one's output, which nobody else reads, stripe by stripe; then
/// the input that it is.
std::optional<int32_t> chainedInput(const Pass& first, const Pass& second, const PassList& list);

struct SectionPlan {
  std::vector<Plan> plans;
  uint64_t cycles = 0;
};
/// The cut in rows of least cycles; none where the passes do not fit SRAM together. With `stays` the output
/// of the last one stays in SRAM. Plans hold the weights' addresses: they come in one transfer
/// (Plan::together with indices from `first` on).
std::optional<SectionPlan> planSection(std::span<const SectionMember> members, size_t first,
                                       const PassList& list, const Target& target, bool stays);

}  // namespace carina::ethosn::compiler
