// SPDX-License-Identifier: Apache-2.0
// The checksum of zip archives. Those of networks have hundreds of megabytes, all of which is checked.
#pragma once

#include <cstdint>

#include "base/tensor.hpp"

namespace carina {

/// CRC-32/ISO-HDLC, as in zlib.
uint32_t crc32Of(ByteSpan bytes);

}  // namespace carina
