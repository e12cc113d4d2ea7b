// SPDX-License-Identifier: Apache-2.0
// A trace with a line for every instruction, changed register and memory access, in the style of Arm's Tarmac
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
  /// Observes the core's instructions and accesses during its lifetime.
  CpuTrace(Write write, const ElfImage& image, const Clock& clock, Core& core);
  ~CpuTrace();
  CpuTrace(const CpuTrace&) = delete;
  CpuTrace& operator=(const CpuTrace&) = delete;

  /// Writes the effects of the latest instruction, which has completed.
  void finish();
  /// To be called when an exception was entered, with its name.
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
  // Of the instruction being executed: its line (empty: there is none), its accesses, and the state before
  // it.
  std::string instruction_;
  std::vector<std::string> accesses_;
  State before_;
};

}  // namespace carina::platform
