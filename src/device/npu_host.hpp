// SPDX-License-Identifier: Apache-2.0
// An NPU on the host: the model of one machine, its driver, and its fast scratch memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carina/ethosu_driver.hpp"
#include "device/aligned_buffer.hpp"
#include "device/host_device.hpp"
#include "device/run.hpp"
#include "pte/delegate_blob.hpp"

namespace carina::device {

/// The machine that runs a program compiled for `compiled`: `options` take precedence over what the program
/// records, and that over the target's defaults.
Result<npu::Machine> chooseMachine(const pte::EthosUSettings& compiled, const RunOptions& options);

struct NpuHost {
  std::string compiledTarget;  // what the program was compiled for
  npu::Machine machine;        // what it runs on
  std::unique_ptr<HostDevice> device;
  std::unique_ptr<rt::EthosUDriver> driver;
  std::vector<Diagnostic> warnings;  // about the selected machine
  AlignedBuffer fastScratch;         // of the memory mode; empty without a dedicated SRAM

  static Result<NpuHost> open(const pte::EthosUSettings& compiled, const RunOptions& options);

  /// Explains a failed job to whoever runs the program: wrong target, fault with command offset.
  Error explain(const rt::Status& status) const;
};

std::string textOf(const rt::Status& status);
Error asError(const rt::Status& status);

}  // namespace carina::device
