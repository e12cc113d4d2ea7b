// SPDX-License-Identifier: Apache-2.0
// Ethos-U command words, to the extent that a driver inspects them (ethosu-command-stream 1). Header-only and
// freestanding. The complete tables are in src/npu/isa/isa.json; tests/npu compares the two.
#pragma once

#include <cstdint>

namespace carina::format {

// Word 0: opcode [9:0], reserved [13:10], control [15:14] (0: one word, 1: two words), parameter [31:16].
constexpr uint32_t ethosuOpcode(uint32_t word) {
  return word & 0x3ffu;
}
constexpr uint32_t ethosuControl(uint32_t word) {
  return (word >> 14) & 3u;
}
constexpr bool ethosuReservedSet(uint32_t word) {
  return (word & 0x3c00u) != 0;
}

namespace ethosu_op {
// One word.
constexpr uint32_t kStop = 0x000, kIrq = 0x001, kConv = 0x002, kDepthwise = 0x003, kPool = 0x005;
constexpr uint32_t kElementwise = 0x006, kResize = 0x007, kDmaStart = 0x010, kDmaWait = 0x011;
constexpr uint32_t kKernelWait = 0x012, kPmuMask = 0x013;
// Two words.
constexpr uint32_t kBranch = 0x100;
}  // namespace ethosu_op

/// Registers set by commands. The opcode of a one-word command is the register number plus 0x100, that of a
/// two-word command is the number itself. IFM2 is 0x80 above IFM in both spaces.
namespace ethosu_set {
constexpr uint32_t kIfm2 = 0x80;
// One word.
constexpr uint32_t kIfmPadTop = 0x00, kIfmPadLeft = 0x01, kIfmPadRight = 0x02, kIfmPadBottom = 0x03;
constexpr uint32_t kIfmDepthM1 = 0x04, kIfmPrecision = 0x05, kIfmUpscale = 0x07, kIfmBroadcast = 0x08;
constexpr uint32_t kIfmWidth0M1 = 0x0a, kIfmHeight0M1 = 0x0b, kIfmHeight1M1 = 0x0c, kIfmRegion = 0x0f;
constexpr uint32_t kOfmWidthM1 = 0x11, kOfmHeightM1 = 0x12, kOfmDepthM1 = 0x13, kOfmPrecision = 0x14;
constexpr uint32_t kOfmWidth0M1 = 0x1a, kOfmHeight0M1 = 0x1b, kOfmHeight1M1 = 0x1c, kOfmRegion = 0x1f;
constexpr uint32_t kKernelWidthM1 = 0x20, kKernelHeightM1 = 0x21, kKernelStride = 0x22, kAccFormat = 0x24;
constexpr uint32_t kWeightRegion = 0x28, kScaleRegion = 0x29;
constexpr uint32_t kDmaSourceRegion = 0x30, kDmaDestinationRegion = 0x31, kDmaSize0 = 0x32, kDmaSize1 = 0x33;
constexpr uint32_t kDmaIndexRegion = 0x34, kIfm2Broadcast = 0x80;
// Two words.
constexpr uint32_t kIfmBase0 = 0x00, kIfmStrideX = 0x04, kIfmStrideY = 0x05, kIfmStrideC = 0x06;
constexpr uint32_t kOfmBase0 = 0x10, kOfmStrideX = 0x14, kOfmStrideY = 0x15, kOfmStrideC = 0x16;
constexpr uint32_t kWeightBase = 0x20, kWeightLength = 0x21, kScaleBase = 0x22, kScaleLength = 0x23;
constexpr uint32_t kDmaSource = 0x30, kDmaDestination = 0x31, kDmaLength = 0x32;
constexpr uint32_t kDmaSkip0 = 0x33, kDmaSkip1 = 0x34;                  // U65
constexpr uint32_t kDmaSourceStride0 = 0x33, kDmaSourceStride1 = 0x34;  // U85, as are those below
constexpr uint32_t kDmaDestinationStride0 = 0x35, kDmaDestinationStride1 = 0x36;
constexpr uint32_t kDmaIndex = 0x37, kDmaIndexMax = 0x38, kDmaIndexSkip1 = 0x39;
constexpr uint32_t kWeight1Base = 0x90;  // followed by its length, and by those of the other streams
constexpr uint32_t kScale1Base = 0x92;   // U65; followed by its length

/// Registers have numbers 0x00..0x3f and 0x80..0xbf; slot() maps these to 0..127.
constexpr uint32_t kSlots = 128;
constexpr bool hasSlot(uint32_t number) {
  return (number & ~0xbfu) == 0;
}
constexpr uint32_t slot(uint32_t number) {
  return (number & 0x3fu) | (number & 0x80u) >> 1;
}
/// Registers that exist on U55, U65 and U85, one bit per slot: one-word registers, then two-word ones.
constexpr uint32_t kExist[3][2][4] = {
    {{0x9dfebebf, 0x000fa3f7, 0x0000be23, 0}, {0x007f007f, 0x0007007f, 0x0000007f, 0x000000ff}},
    {{0x9dfebebf, 0x000fa3ff, 0x0000be23, 0}, {0x007f007f, 0x001f007f, 0x000f007f, 0}},
    {{0x9dfe9fbf, 0x001ffff7, 0x00009e21, 0}, {0x007f007f, 0x03ff00ff, 0x00ff007f, 0}},
};
}  // namespace ethosu_set

}  // namespace carina::format
