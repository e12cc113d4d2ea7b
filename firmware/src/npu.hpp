// SPDX-License-Identifier: Apache-2.0
// The NPU with its driver and delegate, as one object of the program.
#pragma once

#include "carina/ethosu_delegate.hpp"
#include "npu_device.hpp"

namespace carina::firmware {

class Npu {
 public:
  explicit Npu(const Platform& platform, const rt::DriverOptions& options, rt::MutableBytes fastScratch,
               bool poll)
      : device(platform, poll), driver(device, options), delegate(&driver, fastScratch) {}

  NpuDevice device;
  rt::EthosUDriver driver;
  rt::EthosUDelegate delegate;
};

/// The counted events, and their names in counter order, as printed.
struct CountedEvents {
  rt::PmuSetup setup;
  const char* names;
};
CountedEvents countedEvents(rt::NpuProduct product);

}  // namespace carina::firmware
