// SPDX-License-Identifier: Apache-2.0
// Addresses of Thumb loads and stores; encodings as arm-none-eabi-as writes them.
#include "carina-cpu-unicorn/fault_site.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

constexpr uint32_t kPc = 0x10000002;
constexpr uint32_t kRegisters[16] = {0x1000, 0x2000, 0x3000, 8,      0x4000, 0x5000, 0x6000,     0x7000,
                                     0x8000, 0x9000, 0xa000, 0xb000, 0xc000, 0xd000, 0x10000001, kPc};

void expectAccess(uint16_t first, uint16_t second, uint32_t address, uint32_t size, bool store) {
  const auto access = accessOf(first, second, kPc, kRegisters);
  ASSERT_TRUE(access) << std::hex << first << ' ' << second;
  EXPECT_EQ(access->address, address) << std::hex << first << ' ' << second;
  EXPECT_EQ(access->size, size) << std::hex << first << ' ' << second;
  EXPECT_EQ(access->store, store) << std::hex << first << ' ' << second;
}

TEST(FaultSite, Narrow) {
  expectAccess(0x4a03, 0, 0x10000004 + 12, 4, false);  // ldr r2, [pc, #12]
  expectAccess(0x50ca, 0, 0x2008, 4, true);            // str r2, [r1, r3]
  expectAccess(0x56ca, 0, 0x2008, 1, false);           // ldrsb r2, [r1, r3]
  expectAccess(0x5ac8, 0, 0x2008, 2, false);           // ldrh r0, [r1, r3]
  expectAccess(0x604a, 0, 0x2004, 4, true);            // str r2, [r1, #4]
  expectAccess(0x78d0, 0, 0x3003, 1, false);           // ldrb r0, [r2, #3]
  expectAccess(0x8090, 0, 0x3004, 2, true);            // strh r0, [r2, #4]
  expectAccess(0x9902, 0, 0xd008, 4, false);           // ldr r1, [sp, #8]
  expectAccess(0xb530, 0, 0xd000 - 12, 12, true);      // push {r4, r5, lr}
  expectAccess(0xbd10, 0, 0xd000, 8, false);           // pop {r4, pc}
  expectAccess(0xc107, 0, 0x2000, 12, true);           // stmia r1!, {r0, r1, r2}
  expectAccess(0xca03, 0, 0x3000, 8, false);           // ldmia r2, {r0, r1}
}

TEST(FaultSite, Wide) {
  expectAccess(0xf8d1, 0x0123, 0x2123, 4, false);           // ldr.w r0, [r1, #0x123]
  expectAccess(0xf841, 0x0d04, 0x1ffc, 4, true);            // str r0, [r1, #-4]!
  expectAccess(0xf811, 0x0b01, 0x2000, 1, false);           // ldrb r0, [r1], #1
  expectAccess(0xf931, 0x0013, 0x2010, 2, false);           // ldrsh r0, [r1, r3, lsl #1]
  expectAccess(0xf8df, 0x0010, 0x10000004 + 16, 4, false);  // ldr.w r0, [pc, #16]
  expectAccess(0xe9c1, 0x2302, 0x2008, 8, true);            // strd r2, r3, [r1, #8]
  expectAccess(0xe8f1, 0x2302, 0x2000, 8, false);           // ldrd r2, r3, [r1], #8
  expectAccess(0xe851, 0x0f01, 0x2004, 4, false);           // ldrex r0, [r1, #4]
  expectAccess(0xe8df, 0xf003, 0x10000006 + 8, 1, false);   // tbb [pc, r3]
  expectAccess(0xe8df, 0xf013, 0x10000006 + 16, 2, false);  // tbh [pc, r3, lsl #1]
  expectAccess(0xe92d, 0x4ff0, 0xd000 - 36, 36, true);      // push {r4-r11, lr}
  expectAccess(0xe8b1, 0x0301, 0x2000, 12, false);          // ldmia r1!, {r0, r8, r9}
  expectAccess(0xed91, 0x0a02, 0x2008, 4, false);           // vldr s0, [r1, #8]
  expectAccess(0xed01, 0x0b02, 0x1ff8, 8, true);            // vstr d0, [r1, #-8]
  expectAccess(0xed2d, 0x8a04, 0xd000 - 16, 16, true);      // vpush {s16-s19}
  expectAccess(0xecb1, 0x0a04, 0x2000, 16, false);          // vldmia r1!, {s0-s3}
}

TEST(FaultSite, OtherInstructions) {
  EXPECT_FALSE(accessOf(0x1840, 0, kPc, kRegisters));       // adds
  EXPECT_FALSE(accessOf(0xbf30, 0, kPc, kRegisters));       // wfi
  EXPECT_FALSE(accessOf(0xf04f, 0x4370, kPc, kRegisters));  // mov.w
  EXPECT_FALSE(accessOf(0xb083, 0, kPc, kRegisters));       // sub sp
}

TEST(FaultSite, FirstMatchInABlock) {
  // mov.w r3, #1; ldr r0, [r1, #4]; str r0, [r1, #4]; ldr r2, [r2]
  const std::vector<uint16_t> code = {0xf04f, 0x0301, 0x6848, 0x6048, 0x6812};
  const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
  EXPECT_EQ(findAccess(bytes, 10, kPc, 0x2004, false, kRegisters), kPc + 4);
  EXPECT_EQ(findAccess(bytes, 10, kPc, 0x2004, true, kRegisters), kPc + 6);
  EXPECT_EQ(findAccess(bytes, 10, kPc, 0x3003, false, kRegisters), kPc + 8);
  EXPECT_FALSE(findAccess(bytes, 10, kPc, 0x9999, false, kRegisters));
  EXPECT_FALSE(findAccess(bytes, 1, kPc, 0x2004, false, kRegisters));
}

}  // namespace
