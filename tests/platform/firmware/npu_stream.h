// SPDX-License-Identifier: Apache-2.0
// Handwritten command streams.
#pragma once

#include <stdint.h>

#define OP(opcode, parameter) ((opcode) | (uint32_t)(parameter) << 16)
#define SET(opcode, value) (0x4000u | (opcode)), (value)

/// 512 bytes from the start of region 0 to the start of region 1.
static const uint32_t copy_stream[] = {
    OP(0x130, 0),      // NPU_SET_DMA0_SRC_REGION
    OP(0x131, 1),      // NPU_SET_DMA0_DST_REGION
    SET(0x30, 0),      // NPU_SET_DMA0_SRC
    SET(0x31, 0),      // NPU_SET_DMA0_DST
    SET(0x32, 512),    // NPU_SET_DMA0_LEN
    OP(0x10, 0),       // NPU_OP_DMA_START
    OP(0x11, 0),       // NPU_OP_DMA_WAIT
    OP(0x00, 0xffff),  // NPU_OP_STOP
};
static const uint32_t stop_stream[] = {OP(0x00, 0xffff)};
