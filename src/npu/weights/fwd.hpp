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

/// Encodes weights (all decoders interleaved); a multiple of 32 bytes. Fails when the range of values needs
/// more than 8 bits. `sparse` streams always use raw codes.
Result<std::vector<uint8_t>> encodeFwd(std::span<const int16_t> weights, bool sparse = false);

/// Decodes `count` weights; the stream does not carry the count. Fails when the bytes do not suffice.
Result<std::vector<int16_t>> decodeFwd(ByteSpan stream, size_t count);

}  // namespace carina::npu
