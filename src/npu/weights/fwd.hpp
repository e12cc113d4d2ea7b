// SPDX-License-Identifier: Apache-2.0
// The fast weight stream (FWD) of the U85: a 32-byte header with a table of up to 16 values, then 8-, 4- or
// 2-bit codes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"

namespace carina::npu {

/// Encodes weights (all decoders interleaved); a multiple of 32 bytes. Fails if a weight is outside
/// -255..255, or if raw codes would need more than 8 bits. `sparse` streams always use raw codes.
Result<std::vector<uint8_t>> encodeFwd(std::span<const int16_t> weights, bool sparse = false);

/// Decodes `count` weights; the stream does not store the count. Fails if the stream is too short.
Result<std::vector<int16_t>> decodeFwd(ByteSpan stream, size_t count);

}  // namespace carina::npu
