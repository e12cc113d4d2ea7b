// SPDX-License-Identifier: Apache-2.0
#include "platform/cpu_trace.hpp"

#include <array>

#include "cpu_m/encoding.hpp"

namespace carina::platform {
namespace {

const char* worldName(World world) {
  return world == kSecure ? "s" : "ns";
}

const char* modeName(const State& s) {
  return s.handlerMode() ? "handler" : s.privileged() ? "thread" : "user";
}

}  // namespace

CpuTrace::CpuTrace(Write write, const ElfImage& image, const Clock& clock, Core& core)
    : write_(std::move(write)), image_(image), clock_(clock), core_(core) {
  core_.memory.observe(this);
  core_.observe(this);
}

CpuTrace::~CpuTrace() {
  core_.observe(nullptr);
  core_.memory.observe(nullptr);
}

void CpuTrace::accessed(uint32_t address, uint32_t size, uint32_t value, bool write) {
  accesses_.push_back(fmt::format("M{}{} {:08x} {:0{}x}", write ? 'W' : 'R', size, address, value, 2 * size));
}

std::string CpuTrace::instruction(uint32_t address, uint8_t it) const {
  const State& s = core_.state;
  std::array<uint8_t, 4> bytes{};
  (void)core_.memory.peek(address, std::span(bytes).first(2));
  const auto halfword = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  const bool wide = cpu_m::isWide(halfword);
  if (wide) (void)core_.memory.peek(address + 2, std::span(bytes).subspan(2));
  const uint32_t second = bytes[2] | static_cast<uint32_t>(bytes[3]) << 8;
  const uint32_t code = wide ? uint32_t{halfword} << 16 | second : halfword;
  const bool skipped = it != 0 && !cpu_m::conditionHolds(s, it >> 4);
  const std::string name = image_.nameOf(address);
  return fmt::format("{} ({}) {:08x} {} T {}_{} : {}{}{}", skipped ? "IS" : "IT", core_.instructions(),
                     address, wide ? fmt::format("{:08x}", code) : fmt::format("{:04x}", code), modeName(s),
                     worldName(s.world), cpu_m::disassemble(code, wide, address, core_.features(), it),
                     name.empty() ? "" : "  ; ", name);
}

void CpuTrace::registers() const {
  const State& s = core_.state;
  for (uint32_t i = 0; i < 15; ++i)
    if (s.r[i] != before_.r[i]) line("R r{} {:08x}", i, s.r[i]);
  if (const uint32_t flags = s.apsr(); flags != before_.apsr()) line("R apsr {:08x}", flags);
  for (uint32_t i = 0; i < 16; ++i) {
    const auto value = s.element<uint64_t>(i);
    if (value != before_.element<uint64_t>(i)) line("R d{} {:016x}", i, value);
  }
  if (s.fpscrWord() != before_.fpscrWord()) line("R fpscr {:08x}", s.fpscrWord());
  if (s.vpr != before_.vpr) line("R vpr {:08x}", s.vpr);
}

void CpuTrace::comes(uint32_t address, uint8_t it) {
  finish();
  accesses_.clear();  // those of an exception's frame
  now_ = clock_.now();
  before_ = core_.state;
  instruction_ = instruction(address, it);
}

void CpuTrace::finish() {
  if (instruction_.empty()) return;
  line("{}", instruction_);
  for (const std::string& access : accesses_) line("{}", access);
  registers();
  instruction_.clear();
  accesses_.clear();
}

void CpuTrace::exception(const std::string& name) {
  finish();
  now_ = clock_.now();
  line("E {:08x} {}", core_.state.pc, name);
}

}  // namespace carina::platform
