// SPDX-License-Identifier: Apache-2.0
// Dispatches accesses to device addresses to peripherals or the core's system space.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/cpu.hpp"
#include "platform/device.hpp"
#include "platform/system_space.hpp"

namespace carina::platform {

class Peripherals final : public cpu_m::Devices {
 public:
  explicit Peripherals(SystemSpace& system) : system_(system) {}

  /// `base` without the secure bit; `size` in bytes.
  void add(uint32_t base, uint32_t size, std::string name, Peripheral& peripheral) {
    entries_.push_back({base, size, std::move(name), &peripheral});
  }
  /// The same for a peripheral that is only at its Secure address.
  void addSecure(uint32_t base, uint32_t size, std::string name, Peripheral& peripheral) {
    entries_.insert(entries_.begin(), {base | kSecureBit, size, std::move(name), &peripheral});
  }
  uint32_t read(uint32_t address, uint32_t size) override;
  void write(uint32_t address, uint32_t size, uint32_t value) override;
  /// The same for a debugger, without access checks.
  uint32_t readFreely(uint32_t address, uint32_t size);
  void writeFreely(uint32_t address, uint32_t size, uint32_t value);
  bool stopWanted() const override { return stopWanted_ && stopWanted_(); }

  /// Called after each access: whether the CPU should return.
  void setStopWanted(std::function<bool()> stopWanted) { stopWanted_ = std::move(stopWanted); }
  /// Receives every access: "uart0+0x8", and the value read or written.
  using Watch = std::function<void(const std::string& place, bool write, uint32_t value)>;
  void setWatch(Watch watch) { watch_ = std::move(watch); }

  /// Called before each access by software; false: it is RAZ/WI. May throw.
  using Gate = std::function<bool(uint32_t address, bool write)>;
  void setGate(Gate gate) { gate_ = std::move(gate); }

  /// Notified of the first access to each word without a device (the first few words), which is RAZ/WI.
  /// Writes without effect to the core's own registers also count.
  using Unknown = std::function<void(uint32_t address, bool write)>;
  void setUnknown(Unknown unknown) { tellUnknown_ = std::move(unknown); }

 private:
  struct Entry {
    uint32_t base, size;
    std::string name;
    Peripheral* peripheral;
  };
  const Entry* find(uint32_t address) const;
  void noteUnknown(uint32_t address, bool write);
  std::string placeOf(uint32_t address) const;

  SystemSpace& system_;
  std::vector<Entry> entries_;
  std::function<bool()> stopWanted_;
  Watch watch_;
  Gate gate_;
  Unknown tellUnknown_;
  std::vector<uint32_t> unknown_;
};

}  // namespace carina::platform
