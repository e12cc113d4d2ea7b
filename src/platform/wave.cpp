// SPDX-License-Identifier: Apache-2.0
// The format: "Multimedia Programming Interface and Data Specifications 1.0" (IBM, Microsoft, 1991), WAVE;
// and WAVE_FORMAT_EXTENSIBLE, whose sub-format begins with the plain format's code.
#include "platform/wave.hpp"

#include <algorithm>
#include <string_view>

#include "base/file.hpp"

namespace carina::platform {
namespace {

constexpr uint32_t kIntegers = 1, kExtensible = 0xfffe, kSubFormat = 24;
constexpr uint32_t kMaxChannels = 32;
constexpr size_t kChunkHead = 8, kRiffHead = 12, kFormatBytes = 16;

uint32_t number(ByteSpan bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint32_t>(bytes[at + i]) << 8 * i;
  return value;
}

bool is(ByteSpan bytes, size_t at, std::string_view tag) {
  return asText(bytes.subspan(at, tag.size())) == tag;
}

void append(std::string& to, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) to += static_cast<char>(value >> 8 * i & 0xff);
}

Status readFormat(ByteSpan chunk, Wave& wave) {
  if (chunk.size() < kFormatBytes) return fail(Code::Damaged, "its format is cut off");
  uint32_t format = number(chunk, 0, 2);
  if (format == kExtensible && chunk.size() >= kSubFormat + 2) format = number(chunk, kSubFormat, 2);
  wave.channels = number(chunk, 2, 2);
  wave.rate = number(chunk, 4, 4);
  wave.bits = number(chunk, 14, 2);
  const bool known = wave.bits == 8 || wave.bits == 16 || wave.bits == 24 || wave.bits == 32;
  if (format != kIntegers || !known || wave.channels < 1 || wave.channels > kMaxChannels || wave.rate == 0)
    return fail(Code::WrongKind, "holds {} channels of {} bits in format {} at {} Hz", wave.channels,
                wave.bits, format, wave.rate)
        .withRemedy("convert it to integers (PCM) of 8, 16, 24 or 32 bits");
  return {};
}

}  // namespace

int16_t Wave::sample16(uint64_t frame, uint32_t channel) const {
  const uint32_t bytes = bits / 8;
  const uint8_t* at = data.data() + frame * frameBytes() + size_t{std::min(channel, channels - 1)} * bytes;
  if (bytes == 1) return static_cast<int16_t>((at[0] - 128) * 256);  // 8-bit samples are unsigned
  return static_cast<int16_t>(at[bytes - 2] | at[bytes - 1] << 8);
}

Result<Wave> readWave(ByteSpan file) {
  if (file.size() < kRiffHead || !is(file, 0, "RIFF") || !is(file, 8, "WAVE"))
    return fail(Code::WrongKind, "is not a WAV file")
        .withRemedy("choose a file that begins with RIFF and WAVE");
  Wave wave;
  bool hasFormat = false;
  for (size_t at = kRiffHead; file.size() - at >= kChunkHead;) {
    const size_t size = std::min<size_t>(number(file, at + 4, 4), file.size() - at - kChunkHead);
    const ByteSpan chunk = file.subspan(at + kChunkHead, size);
    if (is(file, at, "fmt ")) {
      CARINA_RETURN_IF_ERROR(readFormat(chunk, wave));
      hasFormat = true;
    } else if (is(file, at, "data") && hasFormat) {
      const auto* first = reinterpret_cast<const uint8_t*>(chunk.data());
      wave.data.assign(first, first + size / wave.frameBytes() * wave.frameBytes());
      return wave;
    }
    // Chunks begin at even offsets.
    at = std::min(file.size(), at + kChunkHead + size + (size & 1));
  }
  return fail(Code::Damaged, "has no samples")
      .withRemedy("choose a WAV file with the chunks 'fmt ' and 'data'");
}

std::string wavOf(const Wave& wave) {
  const auto size = static_cast<uint32_t>(wave.data.size());
  std::string file = "RIFF";
  append(file, 36 + size + (size & 1), 4);
  file += "WAVEfmt ";
  append(file, kFormatBytes, 4);
  append(file, kIntegers, 2);
  append(file, wave.channels, 2);
  append(file, wave.rate, 4);
  append(file, wave.rate * wave.frameBytes(), 4);
  append(file, wave.frameBytes(), 2);
  append(file, wave.bits, 2);
  file += "data";
  append(file, size, 4);
  file.append(reinterpret_cast<const char*>(wave.data.data()), size);
  if ((size & 1) != 0) file += '\0';
  return file;
}

}  // namespace carina::platform
