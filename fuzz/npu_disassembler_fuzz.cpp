// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a driver payload, a command stream and assembler text. What can be disassembled must
// round-trip.
#include <cstring>
#include <string_view>
#include <vector>

#include "npu/isa/assembler.hpp"
#include "npu/isa/disassembler.hpp"
#include "npu/isa/stream.hpp"
#include "target.hpp"

namespace carina::npu_disassembler_fuzz {

CARINA_FUZZ_TARGET(npu_disassembler) {
  if (size < 1) return 0;
  const auto family = static_cast<npu::Family>(data[0] % 3);
  (void)npu::assemble({reinterpret_cast<const char*>(data), size});
  const ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto text = npu::disassemblePayload(bytes); text.ok()) {
    const auto assembled = npu::assemble(*text);
    if (!assembled.ok() || assembled->bytes.size() != size ||
        std::memcmp(assembled->bytes.data(), data, size) != 0)
      __builtin_trap();
  }
  std::vector<uint32_t> words((size - 1) / 4);
  if (!words.empty()) std::memcpy(words.data(), data + 1, words.size() * 4);
  const auto assembled = npu::assemble(npu::disassembleStream(words, family));
  if (!assembled.ok() || assembled->stream != words) __builtin_trap();
  for (const npu::Target& target : npu::allTargets()) {
    if (target.family == family) (void)npu::decodeStream(words, target);
  }
  return 0;
}

}  // namespace carina::npu_disassembler_fuzz
