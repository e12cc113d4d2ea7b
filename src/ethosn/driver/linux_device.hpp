// SPDX-License-Identifier: Apache-2.0
// An Ethos-N behind the Linux kernel module, /dev/ethosn0. Written from its interface and tested with a
// simulated kernel; never run on hardware.
#pragma once

#include <array>
#include <string>

#include "ethosn/driver/device.hpp"
#include "ethosn/targets/variant.hpp"

namespace carina::ethosn {

/// The system calls of a device file. Negative results are negated error numbers.
class DeviceFiles {
 public:
  virtual ~DeviceFiles() = default;
  virtual int open(const char* path) = 0;
  virtual int control(int file, unsigned long request, void* argument) = 0;
  /// Maps the file, shared, for reading and writing.
  virtual int map(int file, size_t bytes, void** at) = 0;
  virtual void unmap(void* at, size_t bytes) = 0;
  /// Positive if the file can be read, 0 after the timeout.
  virtual int waitReadable(int file, int milliseconds) = 0;
  virtual int64_t read(int file, void* into, size_t bytes) = 0;
  virtual void close(int file) = 0;
};
DeviceFiles& linuxFiles();

/// A file that is closed on destruction.
class OwnedFile {
 public:
  OwnedFile() = default;
  OwnedFile(DeviceFiles& files, int file) : files_(&files), file_(file) {}
  OwnedFile(OwnedFile&& other) noexcept;
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  ~OwnedFile();
  int get() const { return file_; }

 private:
  DeviceFiles* files_ = nullptr;
  int file_ = -1;
};

class LinuxDevice final : public Device {
 public:
  /// Fails if there is no such device, or if this program does not know its kernel module or its NPU.
  static Result<std::unique_ptr<LinuxDevice>> open(DeviceFiles& files, const std::string& path);

  Result<std::unique_ptr<DeviceBuffer>> createBuffer(uint32_t bytes) override;
  /// Fails on a network for another variant.
  Result<std::unique_ptr<DeviceNetwork>> createNetwork(const CompiledNetwork& network) override;

  /// Variant and SRAM size of the device.
  const Target& target() const { return target_; }

 private:
  LinuxDevice(DeviceFiles& files, OwnedFile allocator, const Target& target)
      : files_(files), allocator_(std::move(allocator)), target_(target) {}

  DeviceFiles& files_;
  OwnedFile allocator_;
  Target target_;
};

}  // namespace carina::ethosn
