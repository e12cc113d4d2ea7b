// SPDX-License-Identifier: Apache-2.0
// Whether the maps of one operation can belong together: what a compiler gets wrong when it changes the shape
// of one map and not of the other. Every rule holds for all sound streams; none needs data.
#pragma once

#include <string>
#include <vector>

#include "npu/isa/operation.hpp"

namespace carina::npu::model {

/// More than half of the rows or columns of the OFM come from windows that lie wholly in the padding on one
/// side. Padding as wide on both sides is left alone: networks pad 1x1 convolutions so.
std::vector<std::string> paddingFindings(const KernelOperation& op);

/// Two elements of the OFM have one address, or two rows of a map in tiles are the same row in memory.
std::vector<std::string> extentFindings(const KernelOperation& op);

/// Shape of the OFM as it lies in memory: U85 may transpose it.
struct MapAxes {
  int64_t h = 1, w = 1, c = 1;
};
MapAxes ofmAxes(const KernelOperation& op);

}  // namespace carina::npu::model
