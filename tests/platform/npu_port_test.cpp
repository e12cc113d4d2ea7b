// SPDX-License-Identifier: Apache-2.0
// The NPU's accesses through the protection controllers of memories.
#include "platform/npu_port.hpp"

#include <gtest/gtest.h>

#include "platform/peripherals.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kSram = 0x21000000, kSecureSram = 0x31000000, kBlock = 0x4000;
constexpr uint32_t kController = 0x50083000, kControl = 0x00, kIndex = 0x18, kTable = 0x1c, kStatus = 0x20,
                   kInfo1 = 0x2c, kInfo2 = 0x30;

class NpuPortTest : public testing::Test {
 protected:
  NpuPortTest() {
    gates_.addTo(peripherals_);
    std::byte* const sram = bus_.find(kSram, 4 * kBlock);
    for (uint32_t i = 0; i < 4 * kBlock; ++i) sram[i] = std::byte{7};
  }
  void write(uint32_t offset, uint32_t value) { peripherals_.writeFreely(kController + offset, 4, value); }
  uint32_t read(uint32_t offset) { return peripherals_.readFreely(kController + offset, 4); }
  /// Which of the first blocks are Non-secure.
  void setBlocks(uint32_t bits) {
    write(kIndex, 0);
    write(kTable, bits);
  }
  void close() {
    gates_.close();
    port_.close(gates_, [this] { return secure_; });
  }

  const Board& board_ = **findBoard("corstone-300");
  Bus bus_ = *Bus::create(board_);
  Core core_{board_.features};
  Interrupts interrupts_;
  Clock clock_;
  SystemSpace system_{board_, clock_, interrupts_, core_};
  Peripherals peripherals_{system_};
  AccessGates gates_{board_, core_, interrupts_, [](uint32_t) {}};
  NpuPort port_{bus_};
  bool secure_ = true;
};

TEST_F(NpuPortTest, SecureBlocksAcceptOnlySecureTransactions) {
  std::byte* const sram = bus_.find(kSram, kBlock);
  secure_ = false;
  EXPECT_EQ(port_.resolve(kSram, kBlock, npu::Access::Write), sram) << "not closed yet";
  close();
  secure_ = true;
  EXPECT_EQ(port_.resolve(kSram, kBlock, npu::Access::Write), sram);
  EXPECT_EQ(port_.resolve(kSecureSram, kBlock, npu::Access::Read), sram) << "either address";
  EXPECT_EQ(read(kStatus), 0u);
  secure_ = false;
  EXPECT_NE(port_.resolve(kSram + 16, 16, npu::Access::Read), sram + 16);
  EXPECT_EQ(read(kStatus), 1u);
  EXPECT_EQ(read(kInfo1), kSram + 16);
  EXPECT_EQ(read(kInfo2), 1u << 16) << "a Non-secure transaction";
  EXPECT_EQ(port_.resolve(0x30000000, 16, npu::Access::Read), nullptr) << "tightly coupled memory";
}

TEST_F(NpuPortTest, RefusedBlocksReadZeroAndKeepTheirContents) {
  close();
  setBlocks(0b0010);  // the second block is Non-secure
  const std::byte* const in = port_.resolve(kSram, 3 * kBlock, npu::Access::Read);
  ASSERT_NE(in, nullptr);
  EXPECT_EQ(in[kBlock - 1], std::byte{7});
  EXPECT_EQ(in[kBlock], std::byte{0});
  EXPECT_EQ(in[2 * kBlock - 1], std::byte{0});
  EXPECT_EQ(in[2 * kBlock], std::byte{7});
  std::byte* const out = port_.resolve(kSram + kBlock - 1, kBlock + 2, npu::Access::Write);
  ASSERT_NE(out, nullptr);
  std::fill(out, out + kBlock + 2, std::byte{9});
  port_.settle();
  const std::byte* const sram = bus_.find(kSram, 4 * kBlock);
  EXPECT_EQ(sram[kBlock - 2], std::byte{7});
  EXPECT_EQ(sram[kBlock - 1], std::byte{9});
  EXPECT_EQ(sram[kBlock], std::byte{7});
  EXPECT_EQ(sram[2 * kBlock - 1], std::byte{7});
  EXPECT_EQ(sram[2 * kBlock], std::byte{9});
  EXPECT_EQ(sram[2 * kBlock + 1], std::byte{7});
}

TEST_F(NpuPortTest, RefusalsCanBeBusErrors) {
  close();
  setBlocks(0b0010);
  write(kControl, 1u << 4 | 1u << 8);
  EXPECT_EQ(port_.resolve(kSram, 2 * kBlock, npu::Access::Read), nullptr);
  EXPECT_NE(port_.resolve(kSram, kBlock, npu::Access::Read), nullptr);
  secure_ = false;
  EXPECT_EQ(port_.resolve(kSram + kBlock, kBlock, npu::Access::Write), bus_.find(kSram + kBlock, kBlock));
}

TEST_F(NpuPortTest, StandInMemoryIsBounded) {
  close();
  secure_ = false;
  const uint64_t half = NpuPort::kMostBytes / 2;
  EXPECT_NE(port_.resolve(0x60000000, half, npu::Access::Read), nullptr);
  EXPECT_NE(port_.resolve(0x60000000, half, npu::Access::Read), nullptr);
  EXPECT_EQ(port_.resolve(0x60000000, 1, npu::Access::Read), nullptr);
  port_.forget();
  EXPECT_NE(port_.resolve(0x60000000, 1, npu::Access::Read), nullptr);
}

}  // namespace
}  // namespace carina::platform
