// SPDX-License-Identifier: Apache-2.0
// Arm semihosting: requests of firmware to its host through BKPT 0xAB. Files are confined to one folder.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "platform/bus.hpp"
#include "platform/clock.hpp"
#include "platform/confined_files.hpp"

namespace carina::platform {

class Semihosting {
 public:
  struct Hooks {
    std::function<void(char)> write;  // to the console
    std::function<int()> read;        // a byte of the console's input, -1 at its end
    std::function<void(uint32_t address, uint32_t size)> changed;  // guest memory was written
  };
  Semihosting(const Bus& bus, const Clock& clock, ConfinedFiles files, std::string commandLine, Hooks hooks);
  ~Semihosting();
  Semihosting(const Semihosting&) = delete;
  Semihosting& operator=(const Semihosting&) = delete;

  /// Performs operation `operation` with argument `argument`; returns the value for R0. After SYS_EXIT,
  /// exitCode() is set.
  uint32_t call(uint32_t operation, uint32_t argument);
  std::optional<int> exitCode() const { return exitCode_; }
  /// The name of a file that was requested although no folder was given.
  const std::string& refusedFile() const { return refusedFile_; }
  static const char* operationName(uint32_t operation);

 private:
  enum class Kind : uint8_t { Closed, Input, Output, Features, File };
  struct Handle {
    Kind kind = Kind::Closed;
    int descriptor = -1;
    uint32_t position = 0;  // of Features
  };

  uint32_t open(uint32_t block);
  uint32_t write(uint32_t block);
  uint32_t read(uint32_t block);
  uint32_t seek(uint32_t block);
  uint32_t length(uint32_t block);
  uint32_t close(uint32_t block);
  uint32_t commandLine(uint32_t block);
  uint32_t exit(uint32_t reason, uint32_t code);
  uint32_t add(Handle handle);
  Handle* find(uint32_t handle);
  uint32_t failed(int error);

  /// Word `index` of an argument block; 0 if there is no memory.
  uint32_t word(uint32_t block, uint32_t index) const { return bus_.load32(block + 4 * index).value_or(0); }
  std::optional<std::string> text(uint32_t address, uint32_t length) const;

  const Bus& bus_;
  const Clock& clock_;
  ConfinedFiles files_;
  std::string commandLine_;
  Hooks hooks_;
  std::vector<Handle> handles_;
  uint32_t error_ = 0;
  std::optional<int> exitCode_;
  std::string refusedFile_;
};

}  // namespace carina::platform
