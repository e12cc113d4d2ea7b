// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as code: the core executes them or stops, within its memory and its budget. The first bytes
// are registers, the rest is in a page of code; the pages around it are unmapped.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cpu_m/core.hpp"
#include "target.hpp"

namespace carina::cpu_fuzz {

namespace {

using namespace carina::cpu_m;

constexpr uint32_t kCode = 0x10000000, kData = 0x20000000, kDevice = 0x40000000, kPage = 4096;
constexpr uint64_t kBudget = 2000;
constexpr int kStops = 32;

/// Returns the value written last.
class Echo final : public Devices {
 public:
  uint32_t read(uint32_t, uint32_t) override { return last_; }
  void write(uint32_t, uint32_t, uint32_t value) override { last_ = value; }
  bool stopWanted() const override { return (last_ & 7) == 5; }

 private:
  uint32_t last_ = 0;
};

struct Free {
  void operator()(uint8_t* p) const { std::free(p); }
};
using Page = std::unique_ptr<uint8_t, Free>;
Page makePage() {
  Page page(static_cast<uint8_t*>(std::aligned_alloc(kPage, kPage)));
  std::memset(page.get(), 0, kPage);
  return page;
}

}  // namespace

CARINA_FUZZ_TARGET(cpu) {
  constexpr size_t kHead = 16 * 4;
  if (size < kHead || size > kHead + kPage) return 0;
  const Page code = makePage(), memory = makePage();
  std::memcpy(code.get(), data + kHead, size - kHead);
  Core core(kDsp | kFloat | kDouble | kHalf | kV81 | kMve | kMveFloat | kSecurity);
  Echo device;
  core.memory.mapRam(kCode, kPage, code.get());
  core.memory.mapRam(kData, kPage, memory.get());
  core.memory.mapDevices(kDevice, kPage);
  core.memory.setDevices(&device);
  core.setCoprocessorAccess(0x00f00000);
  core.setDefaultFpscr(0x00040000);
  State& s = core.state;
  std::memcpy(s.r, data, kHead);
  // Most registers point to memory.
  for (uint32_t i = 0; i < 14; ++i) {
    if ((s.r[i] & 3) != 0) s.r[i] = ((s.r[i] & 3) == 3 ? kDevice : kData) + (s.r[i] >> 8 & (kPage - 1) & ~3u);
  }
  s.pc = kCode;
  // Sometimes as a Non-secure program next to Secure memory with gateways.
  if ((data[0] & 7) == 7) {
    Sau& sau = core.changeSau();
    sau.control = Sau::kEnable;
    sau.regions[0] = {kCode, (kCode + kPage / 2 - 32) | 1};
    sau.regions[1] = {kCode + kPage / 2, (kCode + kPage - 32) | 2 | 1};
    sau.regions[2] = {kData, (kData + kPage / 2 - 32) | 1};
    core.setNonSecureFloatingPoint(true);
    s.sp[kSecure][0] = kData + kPage;
    s.world = kNonSecure;
  }
  for (int stops = 0; stops < kStops; ++stops) {
    const uint64_t before = core.instructions();
    const Stop stop = core.run(kBudget, true);
    if (core.instructions() - before > kBudget + 64) __builtin_trap();
    if (stop.reason == StopReason::Budget) break;
    // Continue after the instruction, as a handler would.
    s.thumb = true;
    s.it = 0;
    s.pc = kCode + ((s.pc + 2) & (kPage - 2));
  }
  return 0;
}

}  // namespace carina::cpu_fuzz
