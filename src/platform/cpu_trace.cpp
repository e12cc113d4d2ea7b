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
}

CpuTrace::~CpuTrace() {
  core_.memory.observe(nullptr);
}

void CpuTrace::accessed(uint32_t address, uint32_t size, uint32_t value, bool write) {
  accesses_.push_back(fmt::format("M{}{} {:08x} {:0{}x}", write ? 'W' : 'R', size, address, value, 2 * size));
}

std::string CpuTrace::instruction() const {
  const State& s = core_.state;
  std::array<uint8_t, 4> bytes{};
  const bool first = core_.memory.peek(s.pc, std::span(bytes).first(2));
  const auto halfword = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  const bool wide = first && cpu_m::isWide(halfword);
  if (!first || (wide && !core_.memory.peek(s.pc + 2, std::span(bytes).subspan(2))))
    return fmt::format("IS ({}) {:08x} -------- T {}_{} : no memory", core_.instructions(), s.pc, modeName(s),
                       worldName(s.world));
  const uint32_t second = bytes[2] | static_cast<uint32_t>(bytes[3]) << 8;
  const uint32_t code = wide ? uint32_t{halfword} << 16 | second : halfword;
  const bool skipped = s.it != 0 && !cpu_m::conditionHolds(s, s.it >> 4);
  const std::string name = image_.nameOf(s.pc);
  return fmt::format("{} ({}) {:08x} {} T {}_{} : {}{}{}", skipped ? "IS" : "IT", core_.instructions(), s.pc,
                     wide ? fmt::format("{:08x}", code) : fmt::format("{:04x}", code), modeName(s),
                     worldName(s.world),
                     cpu_m::disassemble(code, wide, s.pc, core_.features(), static_cast<uint8_t>(s.it)),
                     name.empty() ? "" : "  ; ", name);
}

void CpuTrace::registers(const State& before) {
  const State& s = core_.state;
  for (uint32_t i = 0; i < 15; ++i)
    if (s.r[i] != before.r[i]) line("R r{} {:08x}", i, s.r[i]);
  if (const uint32_t flags = s.apsr(); flags != before.apsr()) line("R apsr {:08x}", flags);
  for (uint32_t i = 0; i < 16; ++i) {
    const auto value = s.element<uint64_t>(i);
    if (value != before.element<uint64_t>(i)) line("R d{} {:016x}", i, value);
  }
  if (s.fpscrWord() != before.fpscrWord()) line("R fpscr {:08x}", s.fpscrWord());
  if (s.vpr != before.vpr) line("R vpr {:08x}", s.vpr);
}

Stop CpuTrace::step() {
  now_ = clock_.now();
  const State before = core_.state;
  const std::string text = instruction();
  accesses_.clear();
  const Stop stop = core_.step();
  line("{}", text);
  for (const std::string& access : accesses_) line("{}", access);
  registers(before);
  return stop;
}

void CpuTrace::exception(const std::string& name) {
  now_ = clock_.now();
  line("E {:08x} {}", core_.state.pc, name);
}

}  // namespace carina::platform
