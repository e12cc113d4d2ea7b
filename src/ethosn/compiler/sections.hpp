// SPDX-License-Identifier: Apache-2.0
// Sections: passes that hand their feature maps to each other stripe by stripe, in rings of stripes in SRAM,
// so that feature maps that do not fit SRAM need not go through DRAM.
#pragma once

#include <span>

#include "ethosn/compiler/plan.hpp"

namespace carina::ethosn::compiler {

/// A pass of a section: what is already in SRAM for it, and its weights as one stripe.
struct SectionMember {
  const Pass* pass = nullptr;
  Occupied occupied;                              // `others` are the same for all
  std::shared_ptr<const EncodedWeights> weights;  // none: no MCE
};

/// The input through which the second pass can consume the first one's output stripe by stripe; empty if it
/// cannot. The caller makes sure that nothing else reads that output.
std::optional<int32_t> chainedInput(const Pass& first, const Pass& second, const PassList& list);

struct SectionPlan {
  std::vector<Plan> plans;
  uint64_t cycles = 0;
};
/// The cut in rows with the fewest cycles; empty if the passes do not fit SRAM together. With `stays` the
/// output of the last one stays in SRAM. The plans contain the addresses of the weights, which are loaded in
/// one transfer (Plan::together, with indices from `first` on).
std::optional<SectionPlan> planSection(std::span<const SectionMember> members, size_t first,
                                       const PassList& list, const Target& target, bool stays);

}  // namespace carina::ethosn::compiler
