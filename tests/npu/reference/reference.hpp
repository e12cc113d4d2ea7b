// SPDX-License-Identifier: Apache-2.0
// A slow, simple interpreter of NPU operations, written element by element from the description of the
// hardware. It shares no arithmetic with the model, so that each is a witness for the other. Weights and
// scale records are passed as plain values, so that encoding and decoding of streams are also tested.
#pragma once

#include <cstdint>
#include <vector>

#include "npu/isa/operation.hpp"

namespace carina::test::reference {

struct Record {
  int64_t bias = 0;
  int64_t multiplier = 1;
  int shift = 0;
};

struct Machine {
  const npu::Target* target = nullptr;
  std::vector<std::vector<uint8_t>> regions;
  std::vector<uint8_t> table = std::vector<uint8_t>(2048);
};

struct Constants {
  std::vector<int> weights;  // OHWI; depthwise HWC
  std::vector<Record> records;
};

/// Executes `op` on the machine's regions.
void execute(Machine& machine, const npu::KernelOperation& op, const Constants& constants);

}  // namespace carina::test::reference
