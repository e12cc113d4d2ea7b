// SPDX-License-Identifier: Apache-2.0
// Fields of the registers that command streams set. A stream contains whole register words; `field.in(word)`
// extracts a value, `field.of(value)` returns its bits within a word: `ce_control::kWinograd.of(1) |
// ce_control::kIfmPads.of(1)`.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/check.hpp"

namespace carina::ethosn {

/// How a value is encoded in its bits.
enum class Coding : uint8_t {
  Plain,
  MinusOne,  // value - 1
  Words,     // bytes / 16
  Signed,    // two's complement
};

struct Field {
  std::string_view name;
  uint8_t low = 0, bits = 32;
  Coding coding = Coding::Plain;

  constexpr uint32_t mask() const { return bits == 32 ? ~0u : (1u << bits) - 1; }

  constexpr int64_t in(uint32_t word) const {
    const int64_t raw = (word >> low) & mask();
    switch (coding) {
      case Coding::MinusOne:
        return raw + 1;
      case Coding::Words:
        return raw * 16;
      case Coding::Signed:
        return (raw >> (bits - 1)) != 0 ? raw - (int64_t{1} << bits) : raw;
      case Coding::Plain:
        break;
    }
    return raw;
  }

  constexpr bool fits(int64_t value) const {
    switch (coding) {
      case Coding::MinusOne:
        return value >= 1 && value <= int64_t{mask()} + 1;
      case Coding::Words:
        return value >= 0 && value % 16 == 0 && value / 16 <= int64_t{mask()};
      case Coding::Signed:
        return value >= -(int64_t{1} << (bits - 1)) && value < (int64_t{1} << (bits - 1));
      case Coding::Plain:
        break;
    }
    return value >= 0 && value <= int64_t{mask()};
  }

  /// The bits of a value, shifted into place. The value must fit: emitters check the limits beforehand.
  constexpr uint32_t of(int64_t value) const {
    CARINA_CHECK(fits(value), "value fits its register field");
    const int64_t raw = coding == Coding::MinusOne ? value - 1 : coding == Coding::Words ? value / 16 : value;
    return (static_cast<uint32_t>(raw) & mask()) << low;
  }
};

using Fields = std::span<const Field>;

// NOLINTBEGIN(readability-identifier-naming): namespaces are called as the registers are
namespace dma_comp_config0 {
inline constexpr Field kSigned{"signed", 23, 1}, kZeroPoint{"zero_point", 24, 8, Coding::Signed};
inline constexpr Field kAll[] = {kSigned, kZeroPoint};
}  // namespace dma_comp_config0

/// Strides and byte counts: the whole word holds value - 1. Words that a format does not use are 0.
namespace dma_bytes {
inline constexpr Field kValue{"bytes", 0, 32, Coding::MinusOne};
inline constexpr Field kAll[] = {kValue};
}  // namespace dma_bytes

namespace sram_address {  // SRAM_ADDR, IFM_SLOT_BASE_ADDRESS, WEIGHT_BASE_ADDR, IFM_SLOT_STRIDE: bytes in a
                          // bank
inline constexpr Field kBytes{"bytes", 0, 15, Coding::Words};
inline constexpr Field kAll[] = {kBytes};
}  // namespace sram_address

namespace dma_channels {
inline constexpr Field kChannels{"channels", 0, 16, Coding::MinusOne};
inline constexpr Field kAll[] = {kChannels};
}  // namespace dma_channels

namespace dma_emcs {  // mask of SRAM banks
inline constexpr Field kBanks{"banks", 0, 32};
}  // namespace dma_emcs

namespace dma_sram_stride {  // in 16-byte words
inline constexpr Field kGroup{"group", 0, 15, Coding::MinusOne}, kRow{"row", 16, 15, Coding::MinusOne};
inline constexpr Field kAll[] = {kGroup, kRow};
}  // namespace dma_sram_stride

namespace dma_cmd {
inline constexpr Field kId{"id", 0, 3}, kFormat{"format", 3, 3};
inline constexpr Field kAll[] = {kId, kFormat};
/// Values of kFormat.
enum class Format : uint8_t {
  Nhwc = 0,
  Nchw = 1,
  Nhwcb = 2,
  NhwcbWeightStreaming = 3,  // writes only: NHWCB with a DRAM stride (STRIDE0)
  Weights = 4,               // reads only
  Broadcast = 5,             // reads only: PLE code
  FcafDeep = 6,
  FcafWide = 7,
};
}  // namespace dma_cmd

namespace ce_control {
inline constexpr Field kIfmPads{"ifm_pads", 0, 4, Coding::MinusOne}, kWideMul{"wide_mul", 4, 2},
    kResampling{"resampling", 6, 2}, kReinterleave{"reinterleave", 8, 2}, kOddWidth{"odd_width", 10, 1},
    kOddHeight{"odd_height", 11, 1}, kBroadcast{"broadcast", 13, 2}, kSignedIfm{"signed_ifm", 15, 1},
    kWinograd{"winograd", 16, 1}, kRelu{"relu", 17, 1}, kBypass{"bypass", 18, 1},
    kKeepAccumulators{"keep_accumulators", 19, 1}, kNoOutput{"no_output", 20, 1},
    kOutputType{"output_type", 21, 2};
inline constexpr Field kAll[] = {kIfmPads,   kWideMul,          kResampling, kReinterleave, kOddWidth,
                                 kOddHeight, kBroadcast,        kSignedIfm,  kWinograd,     kRelu,
                                 kBypass,    kKeepAccumulators, kNoOutput,   kOutputType};
enum class Resampling : uint8_t { None, Nearest, Transpose, Bilinear };
enum class Broadcast : uint8_t { All, Local };  // Local: every engine sees its own channels only (depthwise)
enum class OutputType : uint8_t { U8, S8 };
}  // namespace ce_control

namespace activation_config {
inline constexpr Field kMin{"min", 0, 16, Coding::Signed}, kMax{"max", 16, 16, Coding::Signed};
inline constexpr Field kAll[] = {kMin, kMax};
}  // namespace activation_config

namespace wide_kernel_control {
inline constexpr Field kEnable{"enable", 0, 1}, kWidth{"width", 1, 8, Coding::MinusOne},
    kHeight{"height", 9, 8, Coding::MinusOne};
inline constexpr Field kAll[] = {kEnable, kWidth, kHeight};
}  // namespace wide_kernel_control

namespace wide_kernel_offset {
inline constexpr Field kWidth{"width", 0, 8}, kHeight{"height", 8, 8},
    kDeltaWidth{"delta_width", 16, 8, Coding::Signed}, kDeltaHeight{"delta_height", 24, 8, Coding::Signed};
inline constexpr Field kAll[] = {kWidth, kHeight, kDeltaWidth, kDeltaHeight};
}  // namespace wide_kernel_offset

namespace filter {
inline constexpr Field kMode{"mode", 0, 3};
inline constexpr Field kWidth[] = {{"width0", 3, 3, Coding::MinusOne},
                                   {"width1", 9, 3, Coding::MinusOne},
                                   {"width2", 15, 3, Coding::MinusOne},
                                   {"width3", 21, 3, Coding::MinusOne}};
inline constexpr Field kHeight[] = {{"height0", 6, 3, Coding::MinusOne},
                                    {"height1", 12, 3, Coding::MinusOne},
                                    {"height2", 18, 3, Coding::MinusOne},
                                    {"height3", 24, 3, Coding::MinusOne}};
inline constexpr Field kAll[] = {kMode,     kWidth[0],  kHeight[0], kWidth[1], kHeight[1],
                                 kWidth[2], kHeight[2], kWidth[3],  kHeight[3]};
enum class Mode : uint8_t { Depthwise = 0, FilterNxM = 3, VectorProduct = 4 };
}  // namespace filter

namespace ifm_zero_point {
inline constexpr Field kUnsigned{"zero_point", 0, 8}, kSigned{"zero_point", 0, 8, Coding::Signed};
inline constexpr Field kAll[] = {kSigned};
}  // namespace ifm_zero_point

namespace ifm_default_slot_size {  // elements
inline constexpr Field kWidth{"width", 0, 16}, kHeight{"height", 16, 16};
inline constexpr Field kAll[] = {kWidth, kHeight};
}  // namespace ifm_default_slot_size

namespace ifm_row_stride {
inline constexpr Field kDefault{"default", 0, 15, Coding::Words},
    kResidual{"residual", 16, 15, Coding::Words};
inline constexpr Field kAll[] = {kDefault, kResidual};
}  // namespace ifm_row_stride

namespace ifm_config1 {
inline constexpr Field kGroupStride{"group_stride", 0, 15, Coding::Words}, kNumIfm{"num_ifm_global", 16, 16};
inline constexpr Field kAll[] = {kGroupStride, kNumIfm};
}  // namespace ifm_config1

namespace ifm_config2 {
inline constexpr Field kNumIfm{"num_ifm_local", 0, 16};
inline constexpr Field kAll[] = {kNumIfm};
}  // namespace ifm_config2

namespace ifm_slots {  // IFM_TOP_SLOTS, IFM_MID_SLOTS, IFM_BOTTOM_SLOTS
inline constexpr Field kSlot[] = {{"left", 0, 4}, {"centre", 8, 4}, {"right", 16, 4}};
inline constexpr Field kResidual[] = {
    {"left_residual", 4, 1}, {"centre_residual", 12, 1}, {"right_residual", 20, 1}};
inline constexpr Field kAll[] = {kSlot[0], kResidual[0], kSlot[1], kResidual[1], kSlot[2], kResidual[2]};
}  // namespace ifm_slots

namespace ifm_slot_pad_config {  // whether there is data beyond each edge of the slot
inline constexpr Field kLeft{"left", 0, 1}, kRight{"right", 1, 1}, kTop{"top", 2, 1}, kBottom{"bottom", 3, 1};
inline constexpr Field kAll[] = {kLeft, kRight, kTop, kBottom};
}  // namespace ifm_slot_pad_config

namespace ifm_pad {
inline constexpr Field kLeft{"left", 0, 3}, kTop{"top", 3, 3},
    kDeltaWidth{"delta_width", 6, 5, Coding::Signed}, kDeltaHeight{"delta_height", 11, 5, Coding::Signed};
inline constexpr Field kAll[] = {kLeft, kTop, kDeltaWidth, kDeltaHeight};
}  // namespace ifm_pad

namespace depthwise_control {
inline constexpr Field kIfmsPerOfm{"ifms_per_ofm", 0, 8};
inline constexpr Field kAll[] = {kIfmsPerOfm};
}  // namespace depthwise_control

namespace stripe_block_config {
inline constexpr Field kWidth{"width", 0, 6}, kHeight{"height", 6, 6}, kBypass{"bypass", 12, 2},
    kShuffle{"shuffle", 24, 4};
inline constexpr Field kAll[] = {kWidth, kHeight, kBypass, kShuffle};
}  // namespace stripe_block_config

namespace ofm_stripe_size {  // elements, not rounded
inline constexpr Field kWidth{"width", 0, 16}, kHeight{"height", 16, 16};
inline constexpr Field kAll[] = {kWidth, kHeight};
}  // namespace ofm_stripe_size

namespace ofm_config {
inline constexpr Field kNumOfm{"num_ofm", 0, 16};
inline constexpr Field kAll[] = {kNumOfm};
}  // namespace ofm_config

namespace ple_mceif_config {
inline constexpr Field kBuffers{"buffers", 0, 4, Coding::MinusOne},
    kBufferWords{"buffer_words", 4, 8, Coding::MinusOne}, kBase{"base", 12, 8};
inline constexpr Field kAll[] = {kBuffers, kBufferWords, kBase};
}  // namespace ple_mceif_config
// NOLINTEND(readability-identifier-naming)

}  // namespace carina::ethosn
