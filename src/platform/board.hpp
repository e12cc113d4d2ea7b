// SPDX-License-Identifier: Apache-2.0
// The boards: memories and where they appear, peripherals and their interrupts. Sizes are the largest that
// published linker scripts and headers use. Secure addresses have bit 28 set.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "cpu_m/pipeline.hpp"
#include "npu/targets/architecture.hpp"

namespace carina::platform {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;

struct RamBlock {
  std::string_view name;
  uint32_t address;
  uint64_t size;
  uint32_t alias;  // second address of the memory; equal to `address` if there is none
  bool npu;        // whether the NPU can reach it
};

struct Board {
  std::string_view name;  // "corstone-300"
  std::string_view core;  // in the silicon: "Cortex-M55"
  uint32_t cpuid;
  uint32_t features;  // of the core: cpu_m::Feature
  cpu_m::Pipeline pipeline;
  std::span<const RamBlock> ram;
  uint32_t vectorTable;  // VTOR after reset
  // Peripherals by their address without bit 28.
  uint32_t npu;
  uint32_t npuInterrupt;
  std::span<const npu::Family> npus;  // the default first
  uint32_t timingAdapter[2];          // 0: none
  uint32_t uart0;                     // UART1..5 follow, 4 KiB each
  uint32_t scc, fpgaIo;
  uint32_t sccId;  // identity of the board in the SCC; 0: unknown
  // Display, two-wire buses to touch screen and audio codec, audio; four GPIO ports, 4 KiB each. 0: none.
  uint32_t display, touchBus, codecBus, sound, gpio;
  uint32_t hdlcd = 0;
};

/// Peripherals are in [kPeripherals, kPeripherals + kPeripheralsSize); bit 28 is ignored.
constexpr uint32_t kPeripherals = 0x40000000;
constexpr uint64_t kPeripheralsSize = 0x20000000;
constexpr uint32_t kSecureBit = 1u << 28;
/// The private peripheral bus of the core.
constexpr uint32_t kPrivate = 0xe0000000;
constexpr uint64_t kPrivateSize = 0x00100000;

constexpr uint32_t kUarts = 6;
/// UART n raises receive 33 + 2n, transmit 34 + 2n (n < kUartsWithLines) and combined 43 + n.
constexpr uint32_t kUartsWithLines = 5;
constexpr uint32_t kUartInterrupt = 33;
constexpr uint32_t kUartCombinedInterrupt = 43;

/// The device that the board has at the address of a peripheral but the model lacks: "the Ethernet
/// controller"; empty if unknown.
std::string_view absentDevice(const Board& board, uint32_t address);

std::span<const Board> allBoards();
/// Error lists the known names.
Result<const Board*> findBoard(std::string_view name);

}  // namespace carina::platform
