// SPDX-License-Identifier: Apache-2.0
// Partitioning for a target as the options ask for it.
#pragma once

#include "npu/timing/timing.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// What an NPU says of parts and operators.
struct NpuPlaces {
  partition::Place placeWhole;
  partition::Supports supports;
  partition::PlaceControlFlow placeControlFlow;  // none: the NPU does not branch
};
/// `machine` outlives them.
NpuPlaces placesOf(const npu::Machine& machine);

/// `npu` null: everything stays on the CPU. Refusals come with what would help: another target where that
/// has the operation. Fails when a request to keep operators on the CPU matches nothing. Takes
/// front.quantized. `keepParts`: see partition::Options.
Result<partition::Partitioned> partitionFor(const Options& options, const NpuPlaces* npu, Front& front,
                                            bool keepParts);

}  // namespace carina::pipeline
