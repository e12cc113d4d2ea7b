// SPDX-License-Identifier: Apache-2.0
#include "platform/board.hpp"

#include <array>

#include "cpu_m/encoding.hpp"

namespace carina::platform {
namespace {

/// Both cores come with Helium, double precision and the Security Extension.
constexpr uint32_t kArmv81 = cpu_m::kDsp | cpu_m::kFloat | cpu_m::kDouble | cpu_m::kHalf | cpu_m::kV81 |
                             cpu_m::kMve | cpu_m::kMveFloat | cpu_m::kSecurity;

// DDR: blocks of 256 MiB that alternate between the two worlds, each backed by separate memory; software may
// use all of them contiguously.
constexpr RamBlock kDdr{"DDR", 0x60000000, 2048 * MiB, 0x60000000, true};

constexpr std::array kRam300 = {
    RamBlock{"ITCM", 0x10000000, 512 * KiB, 0x00000000, false},
    RamBlock{"BRAM", 0x11000000, 4 * MiB, 0x01000000, true},
    RamBlock{"DTCM", 0x30000000, 512 * KiB, 0x20000000, false},
    RamBlock{"SRAM", 0x31000000, 32 * MiB, 0x21000000, true},
    RamBlock{"QSPI", 0x38000000, 8 * MiB, 0x28000000, true},
    kDdr,
};
constexpr std::array kRam310 = {
    RamBlock{"ITCM", 0x10000000, 512 * KiB, 0x00000000, false},
    RamBlock{"BRAM", 0x11000000, 2 * MiB, 0x01000000, true},
    RamBlock{"DTCM", 0x30000000, 512 * KiB, 0x20000000, false},
    RamBlock{"SRAM", 0x31000000, 4 * MiB, 0x21000000, true},
    RamBlock{"QSPI", 0x38000000, 8 * MiB, 0x28000000, true},
    kDdr,
};
constexpr std::array kRam320 = {
    // also Corstone-315
    RamBlock{"ITCM", 0x10000000, 512 * KiB, 0x00000000, false},
    RamBlock{"boot ROM", 0x11000000, 128 * KiB, 0x11000000, true},
    RamBlock{"BRAM", 0x12000000, 2 * MiB, 0x01000000, true},  // the boot ROM occupies the usual address
    RamBlock{"DTCM", 0x30000000, 512 * KiB, 0x20000000, false},
    RamBlock{"SRAM", 0x31000000, 4 * MiB, 0x21000000, true},
    RamBlock{"QSPI", 0x38000000, 128 * MiB, 0x28000000, true},
    kDdr,
};

constexpr std::array kU55AndU65 = {npu::Family::U55, npu::Family::U65};
constexpr std::array kU65 = {npu::Family::U65};
constexpr std::array kU85 = {npu::Family::U85};

constexpr std::array kBoards = {
    Board{"corstone-300",
          "Cortex-M55",
          0x410fd221,
          kArmv81,
          cpu_m::Pipeline::M55,
          kRam300,
          0x10000000,
          0x48102000,
          56,
          kU55AndU65,
          {0x48103000, 0x48103200},
          0x49303000,
          0x49300000,
          0x49302000,
          0x41055470,
          0x4930a000,
          0x49200000,
          0x49201000,
          0x49301000,
          0x41100000},
    Board{"corstone-310",
          "Cortex-M85",
          0x410fd230,
          kArmv81 | cpu_m::kPacBti,
          cpu_m::Pipeline::M85,
          kRam310,
          0x11000000,
          0x40004000,
          16,
          kU55AndU65,
          {0, 0},
          0x49303000,
          0x49300000,
          0x49302000,
          0,
          0x4930a000,
          0x49200000,
          0x49201000,
          0x49301000,
          0x41100000},
    Board{"corstone-315",
          "Cortex-M85",
          0x410fd230,
          kArmv81 | cpu_m::kPacBti,
          cpu_m::Pipeline::M85,
          kRam320,
          0x11000000,
          0x40004000,
          16,
          kU65,
          {0, 0},
          0x48203000,
          0x48200000,
          0x48202000,
          0,
          0,
          0,
          0,
          0x48201000,
          0x40100000,
          0x40310000},
    Board{"corstone-320",
          "Cortex-M85",
          0x410fd230,
          kArmv81 | cpu_m::kPacBti,
          cpu_m::Pipeline::M85,
          kRam320,
          0x11000000,
          0x40004000,
          16,
          kU85,
          {0x40006000, 0x40006800},
          0x48203000,
          0x48200000,
          0x48202000,
          0,
          0,
          0,
          0,
          0x48201000,
          0x40100000,
          0x40310000},
};

/// By the address without bit 28, on boards with the FPGA image of MPS3 or MPS4.
struct AbsentDevice {
  bool mps4;
  uint32_t address, size;
  std::string_view name;
};
constexpr AbsentDevice kAbsent[] = {
    {false, 0x41200000, 0x4000, "a DMA controller (PL081)"},
    {false, 0x41400000, 0x100000, "the Ethernet controller"},
    {false, 0x41500000, 0x100000, "the USB controller"},
    {false, 0x41800000, 0x2000, "the QSPI controller's registers"},
    {true, 0x40400000, 0x100000, "the Ethernet controller"},
    {true, 0x40500000, 0x100000, "the USB controller"},
    {true, 0x40800000, 0x2000, "the QSPI controller's registers"},
    {true, 0x48300000, 0x100000, "the image signal processor (a camera is a virtual stream: --vsi)"},
    {true, 0x48400000, 0x100000,
     "the virtual camera of the image signal processor (a camera is a virtual stream: --vsi)"},
};

}  // namespace

std::string_view absentDevice(const Board& board, uint32_t address) {
  for (const AbsentDevice& device : kAbsent) {
    if (device.mps4 == (board.hdlcd != 0) && (address & ~kSecureBit) - device.address < device.size)
      return device.name;
  }
  return {};
}

std::span<const Board> allBoards() {
  return kBoards;
}

Result<const Board*> findBoard(std::string_view name) {
  std::string known;
  for (const Board& board : kBoards) {
    if (board.name == name) return &board;
    known += known.empty() ? "" : ", ";
    known += board.name;
  }
  return fail(Code::UnknownName, "unknown platform '{}'", name).withRemedy("choose one of: " + known);
}

}  // namespace carina::platform
