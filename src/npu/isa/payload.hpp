// SPDX-License-Identifier: Apache-2.0
// Driver payloads on the host: building COP1, reading COP1 and COP2 (byte layout: format/ethosu_payload.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/tensor.hpp"
#include "npu/targets/target.hpp"

namespace carina::npu {

struct Payload {
  bool hasConfig = false;
  uint32_t config = 0, id = 0;  // CONFIG and ID words
  uint32_t streamOffset = 0;    // bytes
  uint64_t stagingBytes = 0;    // COP2
  bool cop2 = false;
  std::vector<uint32_t> words;  // the command stream
};

/// COP1 as the core driver reads it, with the stream 16-byte aligned. Fails if the commands exceed 16 MiB.
Result<std::vector<uint8_t>> buildPayload(const Target& target, std::span<const uint32_t> words);

/// Parses a payload (untrusted): its structure, not its commands.
Result<Payload> readPayload(ByteSpan bytes);

/// The target that a payload was compiled for; fails if its CONFIG word is unknown.
Result<const Target*> payloadTarget(const Payload& payload);

}  // namespace carina::npu
