// SPDX-License-Identifier: Apache-2.0
// How weights get from slow constants to the multipliers, and when. A layer reads them where they lie
// (Direct), from a copy in fast memory (Whole), or from two buffers that are filled in turn (Sliced). Copies
// arrive in pieces while earlier groups leave the way to the constants idle, as far as fast memory allows; a
// copy that a later layer reads again stays.
#pragma once

#include <array>
#include <vector>

#include "npu/timing/timing.hpp"

namespace carina::compiler {

enum class WeightPath : uint8_t { Direct, Whole, Sliced };
constexpr size_t kWeightPaths = 3;

/// Bytes [offset, offset + bytes) of a copy, fetched while group `during` runs (-1: before the first one).
struct Fetch {
  int32_t during = 0;
  int64_t offset = 0, bytes = 0;  // multiples of 16, except the end of the last

  bool operator==(const Fetch&) const = default;
};

/// What one path costs the group that uses it.
struct PathCost {
  npu::Cycles cycles = 0;    // of its operations; kNoPath: not possible
  npu::Cycles port = 0;      // of which the constants' port is busy
  npu::Cycles fastPort = 0;  // and that of the fast memory
};
constexpr npu::Cycles kNoPath = -1;

/// The weights of one group.
struct WeightUse {
  int32_t group = 0;
  int32_t set = 0;         // uses of one set read the same bytes
  int64_t bytes = 0;       // of all of them
  int64_t sliceBytes = 0;  // of one slice
  int32_t slices = 1;      // when sliced
  std::array<PathCost, kWeightPaths> costs;
};

/// A group as the planner sees it; cycles and port of groups with weights are those of the path.
struct WeightGroup {
  npu::Cycles cycles = 0, port = 0;
  npu::Cycles last = 0;   // of its last operation: transfers for later groups start behind it
  int64_t freeBytes = 0;  // fast memory that nothing else needs
  npu::Cycles fastPort = 0;
};

/// The way from the constants to fast memory.
struct TransferSpeed {
  double cyclesPerByte = 1;
  npu::Cycles latency = 0;
  int32_t outstanding = 1;       // transfers that may be under way
  double fastCyclesPerByte = 0;  // of the fast memory's port
};

/// What a plan expects of transfers through a port that kernels use, too.
enum class PortSharing : uint8_t {
  Waiting,  // they have what kernels before them leave; kernels behind them take turns with them
  Turns,    // they have every other access, and kernels end later for it
  Gaps,     // the same, but weights that are fetched ahead have what kernels leave
};

struct WeightProblem {
  std::vector<WeightGroup> groups;
  std::vector<WeightUse> uses;  // in the order of their groups, at most one each
  TransferSpeed speed;
  bool ahead = true;    // fetch earlier than during the group before, and keep copies
  bool copies = false;  // copy whatever there is room for
  PortSharing sharing = PortSharing::Waiting;
};

/// The plan of one use.
struct PlannedWeights {
  WeightPath path = WeightPath::Direct;
  std::vector<Fetch> fetches;            // of a copy, in order; empty when an earlier one is read
  int32_t copyOf = -1;                   // the use whose copy is read
  int32_t liveFirst = 0, liveLast = -1;  // of a copy of its own, in groups

  bool operator==(const PlannedWeights&) const = default;
};

struct WeightPlan {
  std::vector<PlannedWeights> uses;
  npu::Cycles cycles = 0;  // of the whole program, as the planner estimates them
};

/// The plan with the fewest cycles that a local search finds; always one within the memory.
WeightPlan planWeights(const WeightProblem& problem);

}  // namespace carina::compiler
