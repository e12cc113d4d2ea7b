// SPDX-License-Identifier: Apache-2.0
// Quantizes and lowers a small float graph, and compares the TOSA graph with the aten executor on the same
// quantize/dequantize graph.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/graph.hpp"
#include "partition/partition.hpp"
#include "quantize/quantize.hpp"

namespace carina::lower::test {

/// Float32 values from a normal distribution; the same for the same seed.
Tensor randomFloats(const Shape& shape, uint32_t seed, float deviation = 1.0f);
/// Random values of an integer type (bool: 0 and 1; int32 and int64: 0..9).
Tensor randomCodes(const ir::Type& type, uint32_t seed);

struct Comparison {
  int64_t elements = 0;
  int64_t different = 0;  // by one or more
  int64_t largest = 0;    // difference in codes
  double share() const {
    return elements ? static_cast<double>(different) / static_cast<double>(elements) : 0;
  }
};

/// Compares the region of each delegate call, run by the aten executor, with its TOSA graph on the same
/// random codes.
Result<Comparison> compareDelegates(const partition::Partitioned& partitioned, int samples = 2);

/// Decomposes, quantizes on random samples, and partitions (by default without a target's limits).
Result<partition::Partitioned> quantizeAndPartition(ir::Graph graph, const quantize::Options& options = {},
                                                    const partition::Options& partitioning = {});

/// Number of operators of this kind in the delegates' TOSA graphs.
int countOps(const partition::Partitioned& partitioned, const ir::OpDef& def);

}  // namespace carina::lower::test
