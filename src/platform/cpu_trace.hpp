// SPDX-License-Identifier: Apache-2.0
// A line for every instruction, register that it changed and access to memory, in the manner of Arm's Tarmac
// traces (docs/platform.md).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/clock.hpp"
#include "platform/cpu.hpp"
#include "platform/elf.hpp"

namespace carina::platform {

class CpuTrace final : private cpu_m::AccessObserver, private cpu_m::InstructionObserver {
 public:
  using Write = std::function<void(const std::string& line)>;
  /// Observes the core's instructions and accesses as long as it lives.
  CpuTrace(Write write, const ElfImage& image, const Clock& clock, Core& core);
  ~CpuTrace();
  CpuTrace(const CpuTrace&) = delete;
  CpuTrace& operator=(const CpuTrace&) = delete;

  /// Writes what the latest instruction did: nothing of it follows.
  void finish();
  /// An exception was entered: its name.
  void exception(const std::string& name);

 private:
  void accessed(uint32_t address, uint32_t size, uint32_t value, bool write) override;
  void comes(uint32_t address, uint8_t it) override;
  std::string instruction(uint32_t address, uint8_t it) const;
  void registers() const;
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) const {
    write_(fmt::format("{} clk {}", now_, fmt::format(format, std::forward<Args>(args)...)));
  }

  Write write_;
  const ElfImage& image_;
  const Clock& clock_;
  Core& core_;
  uint64_t now_ = 0;
  // Of the instruction being executed: its line (empty: there is none), its accesses, and what was before it.
  std::string instruction_;
  std::vector<std::string> accesses_;
  State before_;
};

}  // namespace carina::platform
