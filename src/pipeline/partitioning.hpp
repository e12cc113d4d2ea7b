// SPDX-License-Identifier: Apache-2.0
// Partitioning for a target according to the options.
#pragma once

#include "npu/timing/timing.hpp"
#include "pipeline/pipeline.hpp"

namespace carina::pipeline {

/// An NPU's answers on parts and operators.
struct NpuPlaces {
  partition::Place placeWhole;
  partition::Supports supports;
  partition::PlaceControlFlow placeControlFlow;  // none: the NPU has no branches
};
/// `machine` must outlive them.
NpuPlaces placesOf(const npu::Machine& machine);

/// `npu` null: everything stays on the CPU. Refusals include what would help, for example a target that
/// supports the operation. Fails if a request to keep operators on the CPU matches nothing. Consumes
/// front.quantized. `keepParts`: see partition::Options.
Result<partition::Partitioned> partitionFor(const Options& options, const NpuPlaces* npu, Front& front,
                                            bool keepParts);

}  // namespace carina::pipeline
