// SPDX-License-Identifier: Apache-2.0
// How a pass is cut into stripes that fit SRAM, and where its tiles lie.
#pragma once

#include "ethosn/compiler/pass.hpp"

namespace carina::ethosn::compiler {

/// A ring of slots in every SRAM bank.
struct TilePlan {
  int64_t address = 0;    // bytes in a bank
  int64_t slotBytes = 0;  // in a bank
  int32_t slots = 0;
};

struct Plan {
  int32_t rows = 0;      // of what the MCE makes (PLE and copy: of the input) per stripe
  int32_t channels = 0;  // of the output of the MCE (PLE, copy: of the input) per stripe
  int32_t rowStripes = 1, channelStripes = 1;
  int32_t inputRowStripes = 1;
  bool channelsOutside = false;  // the loop over channels is the outer one
  bool needsAbove = false, needsBelow = false;
  std::vector<TilePlan> inputs;
  TilePlan weights, output;
  EncodedWeights encoded;
  std::vector<bool> resident;  // inputs that lie in SRAM already, where an earlier pass left them
  bool stored = true;          // false: the output only stays in SRAM
};

/// What SRAM holds while a pass runs.
struct Occupied {
  /// An input that an earlier pass left in SRAM, whole.
  struct Resident {
    size_t input = 0;
    TilePlan tile;
  };
  std::vector<Resident> residents;
  std::vector<TilePlan> others;  // maps for later passes
};

/// Rows of the output that `rows` of the MCE's (input's) make.
int32_t outputRows(const Pass& pass, int32_t rows);
int32_t outputChannels(const Pass& pass, int32_t channels, const Variant& variant);

/// Channels of the four sub-maps of a map.
int32_t interleavedChannels(int32_t channels, const Variant& variant);

/// Bytes in a bank between neighbouring 8x8 groups of a stripe.
int64_t groupStride(int32_t channels, const Variant& variant);

/// With resident inputs only cuts that take all of them at once count.
Result<Plan> planPass(const Pass& pass, const PassList& list, const Target& target,
                      const Occupied& occupied = {});

}  // namespace carina::ethosn::compiler
