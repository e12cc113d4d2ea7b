// SPDX-License-Identifier: Apache-2.0
// Consistency of the feature maps of one operation: errors of compilers that change the shape of one map but
// not of the other. Every rule holds for all valid streams; none needs data.
#pragma once

#include <string>
#include <vector>

#include "npu/isa/operation.hpp"

namespace carina::npu::model {

/// More than half of the rows or columns of the OFM come from windows that are entirely in the padding on one
/// side. Padding of equal width on both sides is accepted: networks pad 1x1 convolutions this way.
std::vector<std::string> paddingFindings(const KernelOperation& op);

/// Two elements of the OFM have the same address, or two rows of a tiled map are the same row in memory.
std::vector<std::string> extentFindings(const KernelOperation& op);

/// Shape of the OFM in memory: U85 may transpose it.
struct MapAxes {
  int64_t h = 1, w = 1, c = 1;
};
MapAxes ofmAxes(const KernelOperation& op);

}  // namespace carina::npu::model
