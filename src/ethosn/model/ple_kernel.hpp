// SPDX-License-Identifier: Apache-2.0
// The parameters of a PLE stripe, as most kernels use them.
#pragma once

#include "ethosn/model/machine.hpp"

namespace carina::ethosn::model {

struct Machine::Kernel {
  struct Input {
    int64_t address = 0;
    int16_t zeroPoint = 0;
    uint16_t multiplier = 0, shift = 0;
  };
  uint32_t agent = 0;
  PleKernel kernel;
  bool isSigned = false;
  bool top = false, bottom = false;  // edges of the tensor that the stripe includes
  std::array<Input, 2> inputs;
  int64_t outAddress = 0;
  int16_t outZeroPoint = 0;
  int32_t w = 0, h = 0, d = 0;  // of the output stripe
  std::array<uint32_t, 8> scratch{};
};

inline int32_t valueOf(uint8_t byte, bool isSigned) {
  return isSigned ? static_cast<int8_t>(byte) : byte;
}

inline uint8_t saturated(int32_t value, bool isSigned) {
  return static_cast<uint8_t>(isSigned ? std::clamp(value, -128, 127) : std::clamp(value, 0, 255));
}

}  // namespace carina::ethosn::model
