// SPDX-License-Identifier: Apache-2.0
// A Cpu in a process of its own, spoken to as cpu_protocol.hpp says.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>

#include "platform/cpu.hpp"
#include "platform/guest_memory.hpp"

namespace carina::platform {

/// Where carina-cpu-unicorn is: beside the running program, else in PATH. An Error says how to get it.
Result<std::filesystem::path> findUnicornCpu();

class RemoteCpu final : public Cpu {
 public:
  /// Starts `program`. `memory` must outlive the CPU.
  static Result<std::unique_ptr<RemoteCpu>> start(const std::filesystem::path& program, GuestMemory& memory);
  ~RemoteCpu() override;

  Status mapRam(uint32_t address, uint64_t size, uint64_t offset) override;
  Status mapDevices(uint32_t address, uint64_t size) override;
  Status codeChanged(uint32_t address, uint64_t size) override;
  Status watch(std::span<const WatchedRange> ranges) override;
  Result<Stop> run(uint64_t budget, bool stopOnMaskChange, DeviceSpace& devices) override;
  Result<Stop> step(DeviceSpace& devices) override;
  CpuRegisters& registers() override { return memory_.shared().registers; }
  uint64_t instructions() const override {
    return memory_.shared().instructions.load(std::memory_order_relaxed);
  }
  bool takeSentEvent() override {
    return memory_.shared().eventSent.exchange(0, std::memory_order_relaxed) != 0;
  }

 private:
  RemoteCpu(GuestMemory& memory, int socket, pid_t process)
      : memory_(memory), socket_(socket), process_(process) {}
  Status send(const cpu_protocol::Message& message);
  Result<cpu_protocol::Message> receive();
  /// A request that is answered by Done.
  Status request(cpu_protocol::Kind kind, uint32_t address, uint64_t count, uint64_t offset,
                 uint32_t flags = 0);
  /// Runs guest code and answers for the devices until the CPU stops.
  Result<Stop> execute(uint64_t budget, uint32_t flags, DeviceSpace& devices);
  Error lost();

  GuestMemory& memory_;
  int socket_;
  pid_t process_;
};

}  // namespace carina::platform
