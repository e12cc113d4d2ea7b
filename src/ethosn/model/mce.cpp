// SPDX-License-Identifier: Apache-2.0
// MCE stripes: fetches the IFM from the slots of its tile, decodes weights, accumulates, scales.
#include <cstdlib>

#include "ethosn/cost/cycles.hpp"
#include "ethosn/model/machine.hpp"
#include "ethosn/model/mce_sums.hpp"

namespace carina::ethosn::model {

using ce_control::Resampling;

namespace {

/// One of the filters applied to the sub-maps of a strided convolution; without stride there is one.
struct Subfilter {
  int32_t kh = 1, kw = 1;
  int32_t top = 0, left = 0;
  int32_t validH = 0, validW = 0;  // rows and columns beyond these are 0
  int32_t channels = 0;            // that it reads; depthwise: of the OFM
  int32_t streamChannels = 0;      // for which it has weights (direct: padded to whole slices)
};

int32_t roundUp(int32_t value, int32_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// (acc * scale) / 2^shift, rounded half up.
int64_t scaled(int32_t acc, OfmScale scale) {
  const int64_t product = int64_t{acc} * scale.scale;
  if (scale.shift == 0) return product;
  return (product + (int64_t{1} << (scale.shift - 1))) >> scale.shift;
}

}  // namespace

struct Machine::Convolution {
  uint32_t agent = 0;
  MceOperation operation = MceOperation::Convolution;
  bool winograd = false, wide = false, signedIfm = false, signedOfm = false;
  Resampling resampling = Resampling::None;
  int32_t h = 0, w = 0, ofms = 0;  // of the OFM stripe
  int32_t ifms = 0;                // channels in the tile
  int32_t zeroPoint = 0;
  int32_t slotH = 0, slotW = 0;
  std::vector<Subfilter> subfilters;

  int64_t weightsPerOfm(int32_t inputs) const {
    int64_t count = 0;
    if (operation == MceOperation::Depthwise || winograd || subfilters.size() == 1) {
      for (const Subfilter& s : subfilters) {
        count += int64_t{s.kh} * s.kw * (operation == MceOperation::Depthwise ? 1 : s.channels);
      }
      return count;
    }
    for (const Subfilter& s : subfilters) {
      const bool last = &s == &subfilters.back();
      count += int64_t{s.kh} * s.kw * (last ? s.channels : roundUp(subfilters.front().channels, inputs));
    }
    return count;
  }
};

Result<Machine::Convolution> Machine::makeConvolution() {
  const MceScheduler& common = mce_.common;
  const ProgramMceStripe& stripe = mce_.registers;
  Convolution conv;
  conv.agent = mce_.agent;
  conv.operation = common.operation;
  conv.winograd = ce_control::kWinograd.in(stripe.ceControl) != 0;
  conv.signedIfm = ce_control::kSignedIfm.in(stripe.ceControl) != 0;
  conv.signedOfm = ce_control::kOutputType.in(stripe.ceControl) == 1;
  conv.resampling = static_cast<Resampling>(ce_control::kResampling.in(stripe.ceControl));
  conv.h = static_cast<int32_t>(ofm_stripe_size::kHeight.in(stripe.ofmStripeSize));
  conv.w = static_cast<int32_t>(ofm_stripe_size::kWidth.in(stripe.ofmStripeSize));
  conv.ofms = static_cast<int32_t>(ofm_config::kNumOfm.in(stripe.ofmConfig));
  conv.ifms = static_cast<int32_t>(ifm_config1::kNumIfm.in(stripe.ifmConfig1));
  conv.zeroPoint = static_cast<int32_t>(
      (conv.signedIfm ? ifm_zero_point::kSigned : ifm_zero_point::kUnsigned).in(common.ifmZeroPoint));
  conv.slotH = static_cast<int32_t>(ifm_default_slot_size::kHeight.in(common.ifmDefaultSlotSize));
  conv.slotW = static_cast<int32_t>(ifm_default_slot_size::kWidth.in(common.ifmDefaultSlotSize));
  conv.wide = wide_kernel_control::kEnable.in(common.wideKernelControl) != 0;
  if (conv.h == 0 || conv.w == 0 || conv.ofms == 0 || conv.ifms == 0) {
    return fail(Code::NpuFault, "an MCE stripe of {}x{}x{} from {} channels is empty", conv.h, conv.w,
                conv.ofms, conv.ifms);
  }
  if (ce_control::kOutputType.in(stripe.ceControl) > 1)
    return fail(Code::NpuFault, "unknown output type of an MCE stripe");
  const auto mode = static_cast<filter::Mode>(filter::kMode.in(common.filter));
  const filter::Mode wanted = conv.operation == MceOperation::Depthwise        ? filter::Mode::Depthwise
                              : conv.operation == MceOperation::FullyConnected ? filter::Mode::VectorProduct
                                                                               : filter::Mode::FilterNxM;
  if (mode != wanted) {
    return fail(Code::NpuFault, "filter mode {} does not belong to MCE operation {}", static_cast<int>(mode),
                static_cast<int>(conv.operation));
  }
  const int64_t maps = ce_control::kIfmPads.in(stripe.ceControl);
  if (maps != 1 && maps != 4) return fail(Code::NpuFault, "{} sub-filters; the model supports 1 and 4", maps);
  if (conv.wide && maps != 1) return fail(Code::NpuFault, "a wide filter has {} sub-filters", maps);
  const int32_t banks = variant_.banks();
  for (size_t k = 0; k < static_cast<size_t>(maps); ++k) {
    Subfilter s;
    if (conv.wide) {
      s.kh = static_cast<int32_t>(wide_kernel_control::kHeight.in(common.wideKernelControl));
      s.kw = static_cast<int32_t>(wide_kernel_control::kWidth.in(common.wideKernelControl));
      s.top = static_cast<int32_t>(wide_kernel_offset::kHeight.in(stripe.wideKernelOffset));
      s.left = static_cast<int32_t>(wide_kernel_offset::kWidth.in(stripe.wideKernelOffset));
      s.validH = conv.h + static_cast<int32_t>(wide_kernel_offset::kDeltaHeight.in(stripe.wideKernelOffset));
      s.validW = conv.w + static_cast<int32_t>(wide_kernel_offset::kDeltaWidth.in(stripe.wideKernelOffset));
    } else {
      const uint32_t pad = stripe.ifmPad[4 * k];
      s.kh = static_cast<int32_t>(filter::kHeight[k].in(common.filter));
      s.kw = static_cast<int32_t>(filter::kWidth[k].in(common.filter));
      s.top = static_cast<int32_t>(ifm_pad::kTop.in(pad));
      s.left = static_cast<int32_t>(ifm_pad::kLeft.in(pad));
      s.validH = conv.h + static_cast<int32_t>(ifm_pad::kDeltaHeight.in(pad));
      s.validW = conv.w + static_cast<int32_t>(ifm_pad::kDeltaWidth.in(pad));
    }
    // Sub-maps are interleaved by the number of banks.
    const int32_t group = static_cast<int32_t>(maps) * banks, rest = conv.ifms % group;
    s.channels = conv.ifms / group * banks + std::clamp(rest - static_cast<int32_t>(k) * banks, 0, banks);
    if (maps == 1) s.channels = conv.ifms;
    if (conv.operation == MceOperation::Depthwise) s.channels = conv.ofms;
    conv.subfilters.push_back(s);
  }
  return conv;
}

/// The IFM under one sub-filter, including what the filter reaches beyond the stripe: [h + kh - 1][w + kw -
/// 1][channels], minus the zero point.
Status Machine::fetchPlane(const Convolution& conv, int subfilter, std::vector<int16_t>& plane) {
  const Subfilter& s = conv.subfilters[static_cast<size_t>(subfilter)];
  const ProgramMceStripe& stripe = mce_.registers;
  const int32_t banks = variant_.banks(), maps = static_cast<int32_t>(conv.subfilters.size());
  const int64_t planeH = conv.h + s.kh - 1, planeW = conv.w + s.kw - 1;
  const double fetches = conv.resampling == Resampling::Bilinear ? 5 : 1;
  CARINA_RETURN_IF_ERROR(spend(static_cast<double>(planeH * planeW) *
                               (kPixelSteps * fetches + kElementSteps * fetches * s.channels)));
  if (planeH * planeW * s.channels > 8 * target_.sramBytes + (int64_t{1} << 24)) {
    return fail(Code::NpuFault, "an MCE stripe reads {}x{}x{} elements, more than any SRAM holds", planeH,
                planeW, s.channels);
  }
  plane.assign(static_cast<size_t>(planeH * planeW * s.channels), 0);
  const bool top = ifm_slot_pad_config::kTop.in(stripe.ifmSlotPadConfig) != 0,
             bottom = ifm_slot_pad_config::kBottom.in(stripe.ifmSlotPadConfig) != 0,
             left = ifm_slot_pad_config::kLeft.in(stripe.ifmSlotPadConfig) != 0,
             right = ifm_slot_pad_config::kRight.in(stripe.ifmSlotPadConfig) != 0;
  const int shift = conv.resampling == Resampling::None ? 0 : 1;
  const int64_t slotBase = sram_address::kBytes.in(mce_.common.ifmSlotBaseAddress),
                slotStride = sram_address::kBytes.in(mce_.common.ifmSlotStride),
                groupStride = ifm_config1::kGroupStride.in(stripe.ifmConfig1);
  const std::array rowsOfSlots = {stripe.ifmTopSlots, stripe.ifmMidSlots, stripe.ifmBottomSlots};
  // The channel groups of this sub-filter: every maps-th group of banks.
  const int64_t channelGroups = (s.channels + banks - 1) / banks;
  std::vector<uint8_t> element(static_cast<size_t>(channelGroups * banks));
  int64_t lastPatch = -1;
  // Source coordinates in the slots; false: no data there.
  const auto load = [&](int64_t y, int64_t x) -> Result<bool> {
    if ((y < 0 && !top) || (x < 0 && !left) || (y >= conv.slotH && !bottom) || (x >= conv.slotW && !right))
      return false;
    const size_t row = y < 0 ? 0 : y < conv.slotH ? 1 : 2, column = x < 0 ? 0 : x < conv.slotW ? 1 : 2;
    const int64_t slot = ifm_slots::kSlot[column].in(rowsOfSlots[row]);
    const bool residual = ifm_slots::kResidual[column].in(rowsOfSlots[row]) != 0;
    const Tile tile{
        slotBase + slot * slotStride, groupStride,
        (residual ? ifm_row_stride::kResidual : ifm_row_stride::kDefault).in(stripe.ifmRowStride)};
    const int64_t yy = row == 0 ? y + conv.slotH : row == 1 ? y : y - conv.slotH;
    const int64_t xx = column == 0 ? x + conv.slotW : column == 1 ? x : x - conv.slotW;
    if (yy < 0 || xx < 0)
      return fail(Code::NpuFault, "the filter reaches more than one slot of {}x{} away", conv.slotH,
                  conv.slotW);
    const int64_t address = tile.at(yy, xx);
    CARINA_RETURN_IF_ERROR(
        sram_.checkRange(address & ~int64_t{15}, ((channelGroups - 1) * maps + subfilter) * 64 + 16));
    const int64_t patch = address / 16;
    for (int64_t g = 0; g < channelGroups; ++g) {
      const int64_t at = address + (g * maps + subfilter) * 64;
      std::memcpy(element.data() + g * banks, sram_.row(at), static_cast<size_t>(banks));
      if (patch != lastPatch && !sramAccesses_.empty()) {
        const auto count = static_cast<size_t>(std::min<int64_t>(banks, s.channels - g * banks));
        const auto conflict = sramAccesses_.touch(static_cast<size_t>(at / 16 * banks), count, 1, access(),
                                                  false, clocks_[static_cast<size_t>(queue_)]);
        if (conflict) report(conflict, fmt::format("SRAM {:#x}", at / 16 * 16), false);
      }
    }
    lastPatch = patch;
    return true;
  };
  const auto value = [&](int64_t c) -> int32_t {
    const uint8_t byte = element[static_cast<size_t>(c)];
    return conv.signedIfm ? static_cast<int8_t>(byte) : byte;
  };
  std::vector<int32_t> sums(static_cast<size_t>(s.channels));
  for (int64_t py = 0; py < planeH; ++py) {
    const int64_t sy = py - s.top;
    if (sy >= s.validH) break;
    if (conv.resampling == Resampling::Transpose && (sy & 1) != 0) continue;
    for (int64_t px = 0; px < planeW; ++px) {
      const int64_t sx = px - s.left;
      if (sx >= s.validW) break;
      if (conv.resampling == Resampling::Transpose && (sx & 1) != 0) continue;
      int16_t* out = plane.data() + (py * planeW + px) * s.channels;
      CARINA_TRY(const bool there, load(sy >> shift, sx >> shift));
      if (!there) continue;
      if (conv.resampling != Resampling::Bilinear || ((sy & 1) == 0 && (sx & 1) == 0)) {
        for (int64_t c = 0; c < s.channels; ++c) out[c] = static_cast<int16_t>(value(c) - conv.zeroPoint);
        continue;
      }
      // The four neighbours between which the element lies; those beyond the edge are replaced by their
      // neighbours inside.
      for (int64_t c = 0; c < s.channels; ++c) sums[static_cast<size_t>(c)] = 0;
      const int64_t lastY = (s.validH - 1) >> 1, lastX = (s.validW - 1) >> 1;
      for (int corner = 0; corner < 4; ++corner) {
        const int64_t y = (sy + (corner >> 1 & sy & 1)) >> 1, x = (sx + (corner & sx & 1)) >> 1;
        CARINA_TRY(const bool beside, load(std::min(y, lastY), std::min(x, lastX)));
        if (!beside) {
          CARINA_TRY(const bool inside, load(sy >> 1, sx >> 1));
          CARINA_CHECK(inside, "the element itself is there");
        }
        for (int64_t c = 0; c < s.channels; ++c) sums[static_cast<size_t>(c)] += value(c);
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        out[c] = static_cast<int16_t>(((sums[static_cast<size_t>(c)] + 2) >> 2) - conv.zeroPoint);
      }
    }
  }
  return {};
}

/// Decodes all OFMs of the stripe into ofms_. A stripe that uses the weights of the preceding one needs no
/// decoding.
Status Machine::decodeWeights(const Convolution& conv, size_t count) {
  DecodedKey key{conv.agent, weightLoads_, count, static_cast<size_t>(conv.ofms),
                 mce_.registers.weightBaseAddress};
  const int32_t banks = variant_.banks();
  const int32_t streams =
      std::min(conv.operation == MceOperation::Depthwise ? banks : variant_.ogs(), conv.ofms);
  const bool again = decoded_ == key;
  if (!again) ofms_.assign(static_cast<size_t>(conv.ofms), {});
  decoded_.reset();
  std::vector<uint8_t> stream;
  for (int32_t og = 0; og < streams; ++og) {
    const int32_t bank = og % banks;
    const int64_t base =
        sram_address::kBytes.in(mce_.registers.weightBaseAddress[static_cast<size_t>(og / variant_.engines)]);
    CARINA_RETURN_IF_ERROR(sram_.checkRange(base, 16));
    if (!again) {
      stream.clear();
      WeightDecoder decoder(stream, variant_.igs(), ogs_[{conv.agent, og}]);
      // Reads bytes from the bank as needed: an OFM begins with its length in words of 16 bytes.
      const auto need = [&](size_t bytes) {
        const size_t end = std::min(bytes, static_cast<size_t>(sram_.bankBytes() - base));
        for (size_t i = stream.size(); i < end; ++i)
          stream.push_back(sram_.row(base + static_cast<int64_t>(i))[bank]);
        decoder.extend(stream);
      };
      for (int32_t ofm = og; ofm < conv.ofms; ofm += streams) {
        CARINA_RETURN_IF_ERROR(spend(kWeightSteps * static_cast<double>(count)));
        const size_t start = decoder.bitOffset();
        need(start / 8 + 4);
        if (start / 8 + 4 <= stream.size()) {
          uint32_t head = 0;
          for (size_t i = 0; i < 4; ++i) head |= uint32_t{stream[start / 8 + i]} << (8 * i);
          need((start / 128 + (head >> start % 8 & 0xFFFF)) * 16);
        }
        auto decoded = decoder.next(count);
        if (!decoded) {
          Error error = std::move(decoded).error();
          return fail(Code::NpuFault, "weights of OFM {}, at SRAM {:#x} of bank {}: {}", ofm, base, bank,
                      error.str());
        }
        ofms_[static_cast<size_t>(ofm)] = std::move(*decoded);
      }
      streamBytes_[static_cast<size_t>(og)] = static_cast<int64_t>((decoder.bitOffset() + 127) / 128 * 16);
    }
    touchSram(base, streamBytes_[static_cast<size_t>(og)], 1u << bank, false);
  }
  decoded_ = key;
  return {};
}

/// For every sub-filter, tap and channel, the position of its weight in the stream of an OFM: -1 if the
/// stream has none.
std::vector<std::vector<int64_t>> Machine::placesOfWeights(const Convolution& conv) const {
  const int32_t inputs = variant_.igs();
  const bool depthwise = conv.operation == MceOperation::Depthwise;
  std::vector<std::vector<int64_t>> places(conv.subfilters.size());
  for (size_t k = 0; k < places.size(); ++k) {
    const Subfilter& s = conv.subfilters[k];
    places[k].assign(static_cast<size_t>(int64_t{s.kh} * s.kw * (depthwise ? 1 : s.channels)), -1);
  }
  int64_t next = 0;
  const auto place = [&](size_t k, int64_t y, int64_t x, int64_t c) {
    const Subfilter& s = conv.subfilters[k];
    const int64_t channels = depthwise ? 1 : s.channels;
    if (c < channels) places[k][static_cast<size_t>((y * s.kw + x) * channels + c)] = next;
    ++next;
  };
  const Subfilter& first = conv.subfilters.front();
  // Wide filters and Winograd process the filter in pieces, 3 elements long.
  const bool pieces = conv.wide || conv.winograd;
  const int32_t pieceH = pieces ? std::min(first.kh, 3) : first.kh,
                pieceW = pieces ? std::min(first.kw, 3) : first.kw;
  if (depthwise) {
    for (size_t k = 0; k < places.size(); ++k) {
      for (int32_t y = 0; y < conv.subfilters[k].kh; ++y) {
        for (int32_t x = 0; x < conv.subfilters[k].kw; ++x) place(k, y, x, 0);
      }
    }
  } else if (pieces) {
    const int32_t slice = conv.winograd ? 1 : inputs;
    for (int32_t py = 0; py < first.kh; py += pieceH) {
      for (int32_t px = 0; px < first.kw; px += pieceW) {
        for (int32_t c0 = 0; c0 < first.channels; c0 += slice) {
          for (int32_t y = py; y < std::min(py + pieceH, first.kh); ++y) {
            for (int32_t x = px; x < std::min(px + pieceW, first.kw); ++x) {
              for (int32_t c = c0; c < std::min(c0 + slice, first.channels); ++c) place(0, y, x, c);
            }
          }
        }
      }
    }
  } else {
    for (int32_t c0 = 0; c0 < first.channels; c0 += inputs) {
      for (size_t k = 0; k < places.size(); ++k) {
        const Subfilter& s = conv.subfilters[k];
        const int32_t end = k + 1 == places.size() ? std::min(c0 + inputs, s.channels) : c0 + inputs;
        for (int32_t y = 0; y < s.kh; ++y) {
          for (int32_t x = 0; x < s.kw; ++x) {
            for (int32_t c = c0; c < end; ++c) place(k, y, x, c);
          }
        }
      }
    }
  }
  CARINA_CHECK(next == conv.weightsPerOfm(inputs), "every weight of the stream has its place");
  return places;
}

Status Machine::convolve(const Convolution& conv, std::vector<int32_t>& sums) {
  const auto perOfm = static_cast<size_t>(conv.weightsPerOfm(variant_.igs()));
  CARINA_RETURN_IF_ERROR(decodeWeights(conv, perOfm));
  const bool depthwise = conv.operation == MceOperation::Depthwise;
  const int64_t pixels = int64_t{conv.h} * conv.w;
  const std::vector<std::vector<int64_t>> places = placesOfWeights(conv);
  std::vector<int16_t> plane, rows, weights;
  for (size_t k = 0; k < places.size(); ++k) {
    const Subfilter& s = conv.subfilters[k];
    if (s.channels == 0) continue;
    CARINA_RETURN_IF_ERROR(fetchPlane(conv, static_cast<int>(k), plane));
    if (!options_.arithmetic) continue;
    const int64_t planeW = conv.w + s.kw - 1;
    if (depthwise) {
      weights.resize(static_cast<size_t>(s.channels));
      for (int32_t tap = 0; tap < s.kh * s.kw; ++tap) {
        for (int32_t o = 0; o < s.channels; ++o) {
          weights[static_cast<size_t>(o)] =
              ofms_[static_cast<size_t>(o)].weights[static_cast<size_t>(places[k][static_cast<size_t>(tap)])];
        }
        for (int64_t y = 0; y < conv.h; ++y) {
          addScaledRows(plane.data() + ((y + tap / s.kw) * planeW + tap % s.kw) * s.channels, conv.w,
                        s.channels, weights.data(), s.channels, sums.data() + y * conv.w * conv.ofms);
        }
      }
      continue;
    }
    const int64_t run = int64_t{s.kw} * s.channels,
                  terms = (run * s.kh + kTermUnit - 1) / kTermUnit * kTermUnit;
    weights.assign(static_cast<size_t>(terms * conv.ofms), 0);
    for (int64_t o = 0; o < conv.ofms; ++o) {
      const std::vector<int16_t>& stream = ofms_[static_cast<size_t>(o)].weights;
      for (size_t i = 0; i < places[k].size(); ++i) {
        if (places[k][i] >= 0)
          weights[static_cast<size_t>(o * terms) + i] = stream[static_cast<size_t>(places[k][i])];
      }
    }
    rows.assign(static_cast<size_t>(terms * conv.w), 0);
    for (int64_t y = 0; y < conv.h; ++y) {
      for (int64_t x = 0; x < conv.w; ++x) {
        for (int64_t ky = 0; ky < s.kh; ++ky) {
          std::memcpy(rows.data() + x * terms + ky * run, plane.data() + ((y + ky) * planeW + x) * s.channels,
                      static_cast<size_t>(run) * sizeof(int16_t));
        }
      }
      addProducts(rows.data(), conv.w, weights.data(), conv.ofms, terms,
                  sums.data() + y * conv.w * conv.ofms);
    }
  }
  result_.stats.macs += static_cast<uint64_t>(pixels) * static_cast<uint64_t>(conv.ofms) * perOfm;
  stats(conv.agent).macs += static_cast<uint64_t>(pixels) * static_cast<uint64_t>(conv.ofms) * perOfm;
  return {};
}

/// Fully connected: the inputs in the order of their bytes in NHWCB, 1024 to a brick; within a brick,
/// successive weights alternate over as many patches of 16 as there are banks.
Status Machine::vectorProduct(const Convolution& conv, std::vector<int32_t>& sums) {
  constexpr int32_t kBrick = 1024;
  const int32_t banks = variant_.banks();
  const int32_t bricks = (conv.ifms * 64 + kBrick - 1) / kBrick;
  const int32_t count = bricks * kBrick;
  CARINA_RETURN_IF_ERROR(decodeWeights(conv, static_cast<size_t>(count)));
  if (conv.h * conv.w != 1) {
    // Only the first element of the stripe is meaningful; the others result from the same inputs.
    if (int64_t{conv.h} * conv.w > 64)
      return fail(Code::NpuFault, "a vector product has a stripe of {}x{} results", conv.w, conv.h);
  }
  const int64_t slot = ifm_slots::kSlot[1].in(mce_.registers.ifmMidSlots);
  const Tile tile{sram_address::kBytes.in(mce_.common.ifmSlotBaseAddress) +
                      slot * sram_address::kBytes.in(mce_.common.ifmSlotStride),
                  0, 0};
  CARINA_RETURN_IF_ERROR(sram_.checkTile(tile, 8, 8, int64_t{bricks} * 16));
  touchTile(tile, 0, 8, 0, 8, int64_t{bricks} * 16, false);
  std::vector<int16_t> inputs(static_cast<size_t>(count));
  const int32_t quarter = 16 * banks, subBricks = 16 / banks;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t within = i % kBrick, q = within / quarter;
    const int32_t part = q % 4 * subBricks + q / 4;
    const int32_t rest = within % quarter;
    const int32_t raw = part * quarter + rest % banks * 16 + rest / banks;
    const int32_t channel = i / kBrick * 16 + raw % 256 / 16, patch = raw / 256;
    const uint8_t byte = sram_.row(tile.base + channel / banks * 64 + patch * 16 + raw % 16)[channel % banks];
    inputs[static_cast<size_t>(i)] =
        static_cast<int16_t>((conv.signedIfm ? static_cast<int8_t>(byte) : byte) - conv.zeroPoint);
  }
  if (options_.arithmetic) {
    std::vector<int16_t> weights(static_cast<size_t>(count) * static_cast<size_t>(conv.ofms));
    for (size_t o = 0; o < static_cast<size_t>(conv.ofms); ++o) {
      std::copy(ofms_[o].weights.begin(), ofms_[o].weights.end(),
                weights.begin() + static_cast<std::ptrdiff_t>(o * static_cast<size_t>(count)));
    }
    addProducts(inputs.data(), 1, weights.data(), conv.ofms, count, sums.data());
    for (int64_t p = 1; p < int64_t{conv.h} * conv.w; ++p) {
      std::copy(sums.begin(), sums.begin() + conv.ofms, sums.begin() + p * conv.ofms);
    }
  }
  const uint64_t macs = static_cast<uint64_t>(count) * static_cast<uint64_t>(conv.ofms);
  result_.stats.macs += macs;
  stats(conv.agent).macs += macs;
  return {};
}

Block Machine::scaleResults(const Convolution& conv, std::span<const int32_t> sums) const {
  Block block{conv.h, conv.w, conv.ofms, std::vector<uint8_t>(sums.size())};
  const int64_t low =
      std::max<int64_t>(activation_config::kMin.in(mce_.common.activationConfig), conv.signedOfm ? -128 : 0);
  const int64_t high =
      std::min<int64_t>(activation_config::kMax.in(mce_.common.activationConfig), conv.signedOfm ? 127 : 255);
  for (size_t i = 0; i < sums.size(); ++i) {
    const OfmScale& scale = ofms_[i % static_cast<size_t>(conv.ofms)].scale;
    const int64_t zeroPoint = conv.signedOfm ? scale.zeroPoint : static_cast<uint8_t>(scale.zeroPoint);
    block.data[i] = static_cast<uint8_t>(std::min(std::max(scaled(sums[i], scale) + zeroPoint, low), high));
  }
  return block;
}

Status Machine::startMce(const StartMceStripe& command) {
  if (!mce_.programmed || mce_.agent != command.agent) {
    return fail(Code::NpuFault, "agent {} starts an MCE stripe that it has not programmed", command.agent);
  }
  if (mceifConfig_ != mce_.common.pleMceifConfig) {
    find(fmt::format("MCEIF is not configured as agent {} needs it", command.agent));
  }
  CARINA_TRY(const Convolution conv, makeConvolution());
  const ProgramMceStripe& stripe = mce_.registers;
  const bool connected = conv.operation == MceOperation::FullyConnected;
  const int64_t results = int64_t{conv.h} * conv.w * conv.ofms;
  if (results > 4 * target_.sramBytes)
    return fail(Code::NpuFault, "an MCE stripe has {} results, more than any PLE can consume", results);
  const int64_t perResult = connected ? int64_t{conv.ifms} * 64 : conv.weightsPerOfm(variant_.igs());
  const double product = !options_.arithmetic                        ? 0
                         : conv.operation == MceOperation::Depthwise ? kDepthwiseSteps
                                                                     : kProductSteps;
  CARINA_RETURN_IF_ERROR(
      spend(static_cast<double>(results) * (kResultSteps + product * static_cast<double>(perResult))));
  const bool keep = ce_control::kKeepAccumulators.in(stripe.ceControl) != 0;
  if (!keep) accumulators_.assign(static_cast<size_t>(results), 0);
  if (accumulators_.size() != static_cast<size_t>(results)) {
    return fail(Code::NpuFault, "a stripe of {} results adds to accumulators of {}", results,
                accumulators_.size());
  }
  CARINA_RETURN_IF_ERROR(connected ? vectorProduct(conv, accumulators_) : convolve(conv, accumulators_));
  if (conv.winograd) assume(Assumption::Winograd);
  if (conv.resampling == Resampling::Bilinear) assume(Assumption::BilinearResize);
  assume(Assumption::MceRounding);
  // All stripes that accumulate carry the biases, which are added once.
  for (size_t i = 0; !keep && i < accumulators_.size(); ++i) {
    accumulators_[i] =
        static_cast<int32_t>(static_cast<uint32_t>(accumulators_[i]) +
                             static_cast<uint32_t>(ofms_[i % static_cast<size_t>(conv.ofms)].bias));
  }
  AgentStats& agent = stats(command.agent);
  agent.stripes += 1;
  const uint64_t cycles = mceCycles(conv);
  agent.cycles += cycles;
  result_.stats.mceCycles += cycles;
  time_.mceStripe(cycles);
  const uint32_t ordinal = access().ordinal;
  if (ce_control::kNoOutput.in(stripe.ceControl) != 0) {
    if (outputs_.empty()) consumedStripes_ = ordinal;
    return {};
  }
  outputs_.push_back({command.agent, ordinal, counters_[static_cast<size_t>(Counter::Mceif)],
                      scaleResults(conv, accumulators_)});
  return {};
}

uint64_t Machine::mceCycles(const Convolution& conv) const {
  const uint32_t block = mce_.common.stripeBlockConfig;
  const MceWork work{conv.operation,
                     conv.winograd,
                     static_cast<int32_t>(std::max<int64_t>(1, stripe_block_config::kWidth.in(block))),
                     static_cast<int32_t>(std::max<int64_t>(1, stripe_block_config::kHeight.in(block))),
                     conv.h,
                     conv.w,
                     conv.ofms};
  if (conv.operation == MceOperation::FullyConnected) {
    const FilterWork all{1, 1, conv.ifms * 64};
    return ethosn::mceCycles(variant_, work, std::span(&all, 1));
  }
  std::vector<FilterWork> filters;
  for (const Subfilter& s : conv.subfilters) filters.push_back({s.kh, s.kw, s.channels});
  return ethosn::mceCycles(variant_, work, filters);
}

}  // namespace carina::ethosn::model
