// SPDX-License-Identifier: Apache-2.0
// How weights get from slow constants to the multipliers, and when. A layer reads them in place (Direct),
// from a copy in fast memory (Whole), or from two buffers that are filled alternately with slices of its
// output channels (Sliced, and with thicker slices, for which its input is read less often). Copies arrive
// in pieces while earlier groups leave the port of the constants idle, as far as fast memory allows; a copy
// that a later layer reads again is kept.
#pragma once

#include <array>
#include <vector>

#include "npu/timing/timing.hpp"

namespace carina::compiler {

enum class WeightPath : uint8_t { Direct, Whole, Sliced, ThickSlices, ThickestSlices };
constexpr size_t kWeightPaths = 5;
constexpr bool isSliced(WeightPath path) {
  return path >= WeightPath::Sliced;
}

/// Bytes [offset, offset + bytes) of a copy, fetched while group `during` runs (-1: before the first one).
struct Fetch {
  int32_t during = 0;
  int64_t offset = 0, bytes = 0;  // multiples of 16, except the end of the last

  bool operator==(const Fetch&) const = default;
};

constexpr npu::Cycles kNoPath = -1;

/// What one path costs the group that uses it.
struct PathCost {
  npu::Cycles cycles = kNoPath;  // of its operations; kNoPath: not possible
  npu::Cycles port = 0;          // busy cycles of the constants' port among these
  npu::Cycles fastPort = 0;      // the same for the port of fast memory
  int64_t sliceBytes = 0;        // of a sliced path
  int32_t slices = 1;
};

/// The weights of one group.
struct WeightUse {
  int32_t group = 0;
  int32_t set = 0;    // uses of the same set read the same bytes
  int64_t bytes = 0;  // of all of them
  std::array<PathCost, kWeightPaths> costs;
};

/// A group as the planner sees it. For groups with weights, cycles and port are those of the path instead.
struct WeightGroup {
  npu::Cycles cycles = 0, port = 0;
  npu::Cycles last = 0;   // of its last operation: transfers for later groups are issued after it
  int64_t freeBytes = 0;  // fast memory that nothing else needs
  npu::Cycles fastPort = 0;
  bool transfers = false;  // needs transfers that are not of weights: tables, rows by index
};

/// The path from the constants to fast memory.
struct TransferSpeed {
  double cyclesPerByte = 1;
  npu::Cycles latency = 0;
  int32_t outstanding = 1;       // transfers that may be in flight
  double fastCyclesPerByte = 0;  // of the port of fast memory
};

/// What a plan assumes about transfers through a port that kernels also use.
enum class PortSharing : uint8_t {
  Waiting,  // they get what earlier kernels leave; later kernels take turns with them
  Turns,    // they get every other access, which makes kernels end later
  Gaps,     // the same, but weights fetched ahead only count on what kernels leave
};

struct WeightProblem {
  std::vector<WeightGroup> groups;
  std::vector<WeightUse> uses;  // in the order of their groups, at most one each
  TransferSpeed speed;
  bool ahead = true;    // fetch earlier than during the preceding group, and keep copies
  bool copies = false;  // copy whatever fits
  /// Pieces may arrive after the group during which they are requested: when the next one begins that needs
  /// the DMA engine for something else.
  bool longPieces = false;
  PortSharing sharing = PortSharing::Waiting;
};

/// The plan for one use.
struct PlannedWeights {
  WeightPath path = WeightPath::Direct;
  std::vector<Fetch> fetches;            // of a copy, in order; empty if an earlier one is read
  int32_t copyOf = -1;                   // the use whose copy is read
  int32_t liveFirst = 0, liveLast = -1;  // of a copy of its own, in groups

  bool operator==(const PlannedWeights&) const = default;
};

struct WeightPlan {
  std::vector<PlannedWeights> uses;
  npu::Cycles cycles = 0;  // of the whole program, as estimated by the planner
};

/// The plan with the fewest cycles that a local search finds; always within the available memory.
WeightPlan planWeights(const WeightProblem& problem);

}  // namespace carina::compiler
