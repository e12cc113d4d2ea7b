// SPDX-License-Identifier: Apache-2.0
// The Ethos-U delegate blob: a sequence of named blocks, each a 32-byte header and a payload padded to 16
// bytes. Header-only and freestanding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carina::format::blob {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kNameBytes = 16;   // NUL padded
constexpr size_t kSizeAt = 16;      // u32, payload bytes without padding
constexpr size_t kExternalAt = 20;  // u8, 1: the payload is a key of named data
constexpr size_t kAlignment = 16;   // of every block, and of the blob in memory
constexpr size_t kExternalKeyBytes = 64;

constexpr char kBegin[] = "vela_bin_stream";
constexpr char kCommands[] = "cmd_data";
constexpr char kWeights[] = "weight_data";
constexpr char kScratchSize[] = "scratch_size";
constexpr char kInputs[] = "inputs";
constexpr char kOutputs[] = "outputs";
constexpr char kEnd[] = "vela_end_stream";

// Inputs and outputs: i32 count, then this many records of i32 words.
constexpr size_t kIoRank = 6;
constexpr size_t kIoElementSizeAt = 24;
constexpr size_t kIoOffsetAt = 28;
constexpr size_t kIoRegionAt = 32;
constexpr size_t kIoBytes = 36;

// What the regions of the command stream are.
constexpr uint32_t kRegionWeights = 0;
constexpr uint32_t kRegionScratch = 1;
constexpr uint32_t kRegionFastScratch = 2;

}  // namespace carina::format::blob
