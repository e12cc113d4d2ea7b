// SPDX-License-Identifier: Apache-2.0
// Driver payloads on the host.
#include "npu/isa/payload.hpp"

#include "format/ethosu_payload.hpp"

namespace carina::npu {

Result<std::vector<uint8_t>> buildPayload(const Target& target, std::span<const uint32_t> words) {
  using format::Cop1Action;
  if (words.size() > format::kMaxStreamWords) {
    return fail(Code::InvalidStream, "command stream of {} bytes exceeds the hardware's 16 MiB",
                words.size() * 4);
  }
  std::vector<uint32_t> all = {
      format::kCop1Fourcc,
      format::kCop1OptimizerConfigWord,
      target.configWord,
      target.idWord,
      format::cop1Word(Cop1Action::Nop, 0),
      format::cop1Word(Cop1Action::Nop, 0),
      format::cop1Word(Cop1Action::Nop, 0),
      format::cop1Word(Cop1Action::CommandStream, static_cast<uint32_t>(words.size()))};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<uint8_t> bytes;
  bytes.reserve(all.size() * 4);
  for (const uint32_t word : all) {
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  return bytes;
}

Result<Payload> readPayload(ByteSpan bytes) {
  format::PayloadView view;
  const format::PayloadStatus status =
      format::parsePayload(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), &view);
  if (status != format::PayloadStatus::Ok) {
    return fail(Code::InvalidStream, "{} ({} bytes)", format::payloadStatusText(status), bytes.size());
  }
  Payload payload;
  payload.hasConfig = view.hasConfig;
  payload.config = view.config;
  payload.id = view.id;
  payload.streamOffset = view.streamOffset;
  payload.stagingBytes = view.stagingBytes;
  payload.cop2 = view.cop2;
  payload.words.resize(view.streamWords);
  for (size_t n = 0; n < payload.words.size(); ++n) payload.words[n] = format::loadWord(view.stream + n * 4);
  return payload;
}

Result<const Target*> payloadTarget(const Payload& payload) {
  if (!payload.hasConfig)
    return fail(Code::InvalidStream, "the driver payload does not say what it was compiled for");
  if (const Target* target = targetByConfig(payload.config)) return target;
  return fail(Code::OtherNpu, "the driver payload was compiled for an unknown NPU (CONFIG {:#010x})",
              payload.config);
}

}  // namespace carina::npu
