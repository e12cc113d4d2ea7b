// SPDX-License-Identifier: Apache-2.0
// The CPU of the virtual platform: executes instructions and nothing else. Interrupts, exceptions, system
// registers, timers and semihosting are the platform's, so any core that runs Thumb code fits behind this
// interface.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "platform/cpu_protocol.hpp"

namespace carina::platform {

using CpuRegisters = cpu_protocol::Registers;
using StopReason = cpu_protocol::Reason;

/// Why a run ended; which reason sets what: cpu_protocol::Reason.
struct Stop {
  StopReason reason = StopReason::Budget;
  uint32_t address = 0;
  uint32_t value = 0;
};

/// What answers the loads and stores that do not go to memory. Called while the CPU runs.
class DeviceSpace {
 public:
  /// `size` is 1, 2 or 4.
  virtual uint32_t read(uint32_t address, uint32_t size) = 0;
  virtual void write(uint32_t address, uint32_t size, uint32_t value) = 0;
  /// Whether the latest access wants the CPU to come back at the end of the basic block.
  virtual bool stopWanted() const = 0;

 protected:
  ~DeviceSpace() = default;
};

/// Data accesses after which a run ends.
struct WatchedRange {
  uint32_t address, size;
  bool reads, writes;
  friend bool operator==(const WatchedRange&, const WatchedRange&) = default;
};

class Cpu {
 public:
  virtual ~Cpu() = default;

  /// Addresses [address, address + size) are the guest memory from `offset` on. One memory may appear at
  /// several addresses. Multiples of 4096.
  virtual Status mapRam(uint32_t address, uint64_t size, uint64_t offset) = 0;
  /// Accesses to [address, address + size) go to the DeviceSpace.
  virtual Status mapDevices(uint32_t address, uint64_t size) = 0;
  /// Code at these addresses was changed behind the CPU's back; size 0: anywhere.
  virtual Status codeChanged(uint32_t address, uint64_t size) = 0;

  /// From the next run on; replaces the ranges of the last call. Slow while there are any.
  virtual Status watch(std::span<const WatchedRange> ranges) = 0;

  /// Runs until `budget` instructions are done (a few more: whole basic blocks) or something happens. With
  /// `stopOnMaskChange` also comes back when PRIMASK, BASEPRI or FAULTMASK change. An Error: the CPU is lost.
  virtual Result<Stop> run(uint64_t budget, bool stopOnMaskChange, DeviceSpace& devices) = 0;

  /// Runs one instruction; an IT instruction goes together with those it governs.
  virtual Result<Stop> step(DeviceSpace& devices) = 0;

  /// Valid while stopped; what is written counts from the next run on. r[13] is read-only: write msp or psp.
  virtual CpuRegisters& registers() = 0;
  /// Instructions executed so far; also valid inside DeviceSpace calls.
  virtual uint64_t instructions() const = 0;
  /// Whether SEV has been executed since the last call.
  virtual bool takeSentEvent() = 0;
};

}  // namespace carina::platform
