// SPDX-License-Identifier: Apache-2.0
// Driver payloads, which carry a command stream to the driver. COP1 is the form that ethos-u-core-driver
// reads and Carina writes; COP2 is a newer form that some compilers write. Little-endian words. Header-only
// and freestanding: no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carina::format {

constexpr uint32_t kCop1Fourcc = 0x31504f43;  // "COP1"
constexpr uint32_t kCop2Fourcc = 0x32504f43;  // "COP2"
constexpr uint32_t kVeumFourcc = 0x4d554556;  // "VEUM", the metadata of COP2

/// Action of a COP1 word: command [7:0], reserved [15:8] (high part of a length), data [31:16].
enum class Cop1Action : uint32_t {
  Reserved = 0,
  OptimizerConfig = 1,
  CommandStream = 2,
  ReadApb = 3,
  DumpShram = 4,
  Nop = 5,
};
constexpr Cop1Action cop1Action(uint32_t word) {
  return static_cast<Cop1Action>(word & 0xffu);
}
constexpr uint32_t cop1Length(uint32_t word) {
  return ((word >> 8) & 0xffu) << 16 | word >> 16;
}
constexpr uint32_t cop1Word(Cop1Action action, uint32_t data) {
  return static_cast<uint32_t>(action) | ((data >> 16) & 0xffu) << 8 | (data & 0xffffu) << 16;
}
/// OPTIMIZER_CONFIG with release 0, patch 1.
constexpr uint32_t kCop1OptimizerConfigWord = 0x00100001;
/// Words before the stream in payloads that compilers write: fourcc, config (3), NOPs (3), stream header.
constexpr uint32_t kCop1HeaderWords = 8;
/// Maximum number of stream words in a COMMAND_STREAM action (16 MiB).
constexpr uint32_t kMaxStreamWords = 1u << 22;

// COP2: bytes from the start of the payload.
constexpr uint32_t kCop2HeaderBytes = 16;  // fourcc, u16 major 1, u16 minor 0, u64 bytes after this header
constexpr uint32_t kCop2EntryHeaderBytes = 8;  // u32 type, u32 length of the entry data
constexpr uint32_t kCop2EntryStream = 1;
constexpr uint32_t kCop2MetadataBytes = 32;  // from "VEUM" to the padding
constexpr uint32_t kCop2FeatureNetworkAddresses = 1;
constexpr uint32_t kCop2FeatureLocalAddresses = 2;

/// Where the stream is in a payload, and what it was compiled for.
struct PayloadView {
  const unsigned char* stream = nullptr;  // first command word; words may be unaligned
  uint32_t streamWords = 0;
  uint32_t streamOffset = 0;  // bytes from the start of the payload
  uint32_t config = 0;        // CONFIG word; 0 without configuration
  uint32_t id = 0;            // ID word
  bool hasConfig = false;
  bool cop2 = false;
  uint64_t stagingBytes = 0;  // COP2
};

enum class PayloadStatus : uint8_t {
  Ok,
  TooShort,        // ends inside a header or the stream
  NotAPayload,     // neither COP1 nor COP2
  BadSize,         // not a multiple of 4
  UnknownAction,   // COP1 action that no driver accepts; unknown COP2 entry or version
  NoStream,        // no command stream
  SeveralStreams,  // the driver would start the second before the first is done
  BadAlignment,    // the stream is not 16-byte aligned within the payload
};

constexpr const char* payloadStatusText(PayloadStatus status) {
  switch (status) {
    case PayloadStatus::Ok:
      return "ok";
    case PayloadStatus::TooShort:
      return "the payload ends inside a header or the command stream";
    case PayloadStatus::NotAPayload:
      return "the payload starts with neither COP1 nor COP2";
    case PayloadStatus::BadSize:
      return "the payload size is not a multiple of 4";
    case PayloadStatus::UnknownAction:
      return "the payload holds an action that drivers reject";
    case PayloadStatus::NoStream:
      return "the payload holds no command stream";
    case PayloadStatus::SeveralStreams:
      return "the payload holds more than one command stream";
    case PayloadStatus::BadAlignment:
      return "the command stream is not 16-byte aligned in the payload";
  }
  return "unknown";
}

constexpr uint32_t loadWord(const unsigned char* bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

namespace payload_detail {
constexpr PayloadStatus parseCop1(const unsigned char* data, size_t size, PayloadView* view) {
  size_t at = 4;
  while (at < size) {
    const uint32_t word = loadWord(data + at);
    const size_t words = (size - at) / 4;
    switch (cop1Action(word)) {
      case Cop1Action::OptimizerConfig:
        if (words < 3) return PayloadStatus::TooShort;
        view->config = loadWord(data + at + 4);
        view->id = loadWord(data + at + 8);
        view->hasConfig = true;
        at += 12;
        break;
      case Cop1Action::CommandStream: {
        const uint32_t count = cop1Length(word);
        if (count > words - 1) return PayloadStatus::TooShort;
        if (view->stream != nullptr) return PayloadStatus::SeveralStreams;
        if ((at + 4) % 16 != 0) return PayloadStatus::BadAlignment;
        view->stream = data + at + 4;
        view->streamOffset = static_cast<uint32_t>(at + 4);
        view->streamWords = count;
        at += 4 + size_t{count} * 4;
        break;
      }
      case Cop1Action::Nop:
        at += 4;
        break;
      default:
        return PayloadStatus::UnknownAction;
    }
  }
  return view->stream != nullptr ? PayloadStatus::Ok : PayloadStatus::NoStream;
}

constexpr PayloadStatus parseCop2(const unsigned char* data, size_t size, PayloadView* view) {
  view->cop2 = true;
  if (size < kCop2HeaderBytes) return PayloadStatus::TooShort;
  if ((loadWord(data + 4) & 0xffffu) != 1) return PayloadStatus::UnknownAction;
  if (loadWord(data + 12) != 0 || loadWord(data + 8) > size - kCop2HeaderBytes)
    return PayloadStatus::TooShort;
  const size_t end = kCop2HeaderBytes + loadWord(data + 8);
  size_t at = kCop2HeaderBytes;
  while (at < end) {
    if (end - at < kCop2EntryHeaderBytes) return PayloadStatus::TooShort;
    const uint32_t type = loadWord(data + at);
    const uint32_t length = loadWord(data + at + 4);
    at += kCop2EntryHeaderBytes;
    if (length > end - at) return PayloadStatus::TooShort;
    if (type != kCop2EntryStream) return PayloadStatus::UnknownAction;
    if (view->stream != nullptr) return PayloadStatus::SeveralStreams;
    if (length < 4 + kCop2MetadataBytes) return PayloadStatus::TooShort;
    const uint32_t metadata = loadWord(data + at);  // "VEUM" to the end of the padding
    if (metadata < kCop2MetadataBytes || metadata > length - 4) return PayloadStatus::TooShort;
    const unsigned char* fields = data + at + 4;
    if (loadWord(fields) != kVeumFourcc) return PayloadStatus::UnknownAction;
    view->config = loadWord(fields + 12);
    view->id = loadWord(fields + 16);
    view->hasConfig = true;
    view->stagingBytes = loadWord(fields + 24) | static_cast<uint64_t>(loadWord(fields + 28)) << 32;
    const size_t stream = at + 4 + metadata;
    if (stream % 16 != 0) return PayloadStatus::BadAlignment;
    if ((length - 4 - metadata) % 4 != 0) return PayloadStatus::BadSize;
    view->stream = data + stream;
    view->streamOffset = static_cast<uint32_t>(stream);
    view->streamWords = (length - 4 - metadata) / 4;
    at += length;
  }
  return view->stream != nullptr ? PayloadStatus::Ok : PayloadStatus::NoStream;
}
}  // namespace payload_detail

/// Reads a payload of `size` bytes (untrusted). `view` points into it. Only the form is checked, never the
/// commands.
constexpr PayloadStatus parsePayload(const unsigned char* data, size_t size, PayloadView* view) {
  *view = PayloadView{};
  if (size < 4 || data == nullptr) return PayloadStatus::TooShort;
  if (size % 4 != 0) return PayloadStatus::BadSize;
  if (size / 4 > kMaxStreamWords + 64) return PayloadStatus::BadSize;
  const uint32_t fourcc = loadWord(data);
  if (fourcc == kCop1Fourcc) return payload_detail::parseCop1(data, size, view);
  if (fourcc == kCop2Fourcc) return payload_detail::parseCop2(data, size, view);
  return PayloadStatus::NotAPayload;
}

}  // namespace carina::format
