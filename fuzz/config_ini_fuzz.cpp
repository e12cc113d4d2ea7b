// SPDX-License-Identifier: Apache-2.0
// Arbitrary text as a --config file: every section is tried as a system configuration and as a memory mode of
// every family.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npu/targets/target.hpp"
#include "target.hpp"

namespace carina::config_ini_fuzz {

namespace {

/// A file in memory.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : descriptor_(memfd_create("config", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// The names that follow "[PREFIX.", at most eight.
std::vector<std::string> sections(std::string_view text, std::string_view prefix) {
  std::vector<std::string> names;
  const std::string opening = "[" + std::string(prefix) + ".";
  for (size_t at = text.find(opening); at != std::string_view::npos && names.size() < 8;
       at = text.find(opening, at + 1)) {
    const size_t begin = at + opening.size();
    names.emplace_back(text.substr(begin, text.find_first_of("]\n", begin) - begin));
  }
  return names;
}

void check(const carina::npu::Machine& machine) {
  if (!std::isfinite(machine.system.clockHz) || machine.system.clockHz <= 0 || machine.memory.cacheBytes < 0)
    __builtin_trap();
  for (const auto& port : machine.system.ports) {
    if (!std::isfinite(port.clockScale) || port.clockScale <= 0 || port.ports < 1 || port.burst < 1)
      __builtin_trap();
  }
}

}  // namespace

CARINA_FUZZ_TARGET(config_ini) {
  const MemoryFile file(data, size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> systems = sections(text, "System_Config"), modes = sections(text, "Memory_Mode");
  systems.emplace_back();
  modes.emplace_back();
  for (const char* target : {"ethos-u55-128", "ethos-u65-256", "ethos-u85-256"}) {
    for (const std::string& system : systems) {
      for (const std::string& mode : modes) {
        if (const auto machine = npu::makeMachine(target, system, mode, file.path()); machine.ok())
          check(*machine);
      }
    }
  }
  return 0;
}

}  // namespace carina::config_ini_fuzz
