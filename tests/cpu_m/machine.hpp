// SPDX-License-Identifier: Apache-2.0
// A core with a small memory for tests: code at 0x10000000, data at 0x20000000 (64 KiB each), a device at
// 0x40000000.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "cpu_m/core.hpp"

namespace carina::cpu_m {

class RecordingDevice final : public Devices {
 public:
  uint32_t read(uint32_t address, uint32_t size) override {
    accesses.push_back({address, size, 0, false});
    return answer;
  }
  void write(uint32_t address, uint32_t size, uint32_t value) override {
    accesses.push_back({address, size, value, true});
  }
  bool stopWanted() const override { return stop; }

  struct Access {
    uint32_t address, size, value;
    bool write;
  };
  std::vector<Access> accesses;
  uint32_t answer = 0x12345678;
  bool stop = false;
};

struct Machine {
  static constexpr uint32_t kCode = 0x10000000, kData = 0x20000000, kDevice = 0x40000000, kSize = 0x10000;
  static constexpr uint32_t kAllFeatures =
      kDsp | kFloat | kDouble | kHalf | kV81 | kMve | kMveFloat | kSecurity | kPacBti;

  explicit Machine(uint32_t features = kAllFeatures, Pipeline pipeline = Pipeline::None)
      : core(features, pipeline) {
    core.memory.mapRam(kCode, kSize, memory.get());
    core.memory.mapRam(kData, kSize, memory.get() + kSize);
    core.memory.mapDevices(kDevice, 0x1000);
    core.memory.setDevices(&device);
    core.setCoprocessorAccess(0x00f00000);
    core.state.pc = kCode;
    core.state.r[13] = kData + kSize;
  }

  /// Puts halfwords at an address.
  void put(uint32_t address, std::initializer_list<uint16_t> halfwords) {
    for (const uint16_t halfword : halfwords) {
      std::memcpy(at(address), &halfword, 2);
      address += 2;
    }
    core.codeChanged();
  }
  uint8_t* at(uint32_t address) {
    return address >= kData ? memory.get() + kSize + (address - kData) : memory.get() + (address - kCode);
  }
  uint32_t word(uint32_t address) {
    uint32_t value = 0;
    std::memcpy(&value, at(address), 4);
    return value;
  }
  void setWord(uint32_t address, uint32_t value) { std::memcpy(at(address), &value, 4); }

  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  std::unique_ptr<uint8_t, Free> memory{static_cast<uint8_t*>(std::aligned_alloc(4096, 2 * kSize))};
  RecordingDevice device;
  Core core;
};

}  // namespace carina::cpu_m
