// SPDX-License-Identifier: Apache-2.0
// The output stage (output_stage.hpp).
#include "npu/model/output_stage.hpp"

#include <array>
#include <cmath>
#include <cstring>

namespace carina::npu::model {
namespace {

/// TFLite's int16 logistic table: 65536 * sigmoid(i / 24), shifted by half the error of linear interpolation
/// midway to the next entry; the last entry is 65535.
const std::array<int64_t, 256>& sigmoidTable() {
  static const std::array<int64_t, 256> table = [] {
    const auto sigmoid = [](double i) { return 65536.0 / (1.0 + std::exp(-i / 24.0)); };
    std::array<int64_t, 256> t{};
    for (size_t i = 0; i < t.size(); ++i) {
      const auto at = static_cast<double>(i);
      const double missed = sigmoid(at + 0.5) - (sigmoid(at) + sigmoid(at + 1)) / 2;
      t[i] = std::llround(sigmoid(at) + missed / 2);
    }
    t.back() = 65535;
    return t;
  }();
  return table;
}

}  // namespace

int64_t tableBytes(Table table) {
  switch (table) {
    case Table::None:
      return 0;
    case Table::Lut8:
      return 256;
    case Table::Lut8To16:
      return 512;
    case Table::Lut8To32:
      return 1024;
    default:
      return 2048;
  }
}

Outcome readScaleRecords(const Target& target, const KernelOperation& op, int64_t count, AddressMap& memory,
                         std::vector<ScaleRecord>& records) {
  records.clear();
  if (!op.weights) return makeFault(FaultKind::Parse, "per-channel scaling without a scale stream");
  const WeightStreams& streams = *op.weights;
  // With two cores, core k holds channels k, k + 2, ...; the second stream is idle when one core works.
  const int64_t cores = target.cores == 2 && streams.scales[1].length > 0 ? 2 : 1;
  std::array<const std::byte*, 2> from{};
  for (int64_t core = 0; core < cores; ++core) {
    const int64_t own = (count - core + cores - 1) / cores;
    const AddressRange& range = streams.scales[static_cast<size_t>(core)];
    const auto needed = static_cast<uint64_t>(own * kScaleRecordBytes);
    if (own > 0 && range.length < needed) {
      OperationFault result =
          makeFault(FaultKind::Parse, "scale stream {} holds {} bytes, {} channels need {}", core,
                    range.length, own, needed);
      result.channel = static_cast<uint8_t>(Channel::Scales);
      return result;
    }
    if (own <= 0) continue;
    from[static_cast<size_t>(core)] =
        memory.resolve(streams.scaleRegion, range.address, needed, Access::Read);
    if (from[static_cast<size_t>(core)] == nullptr) {
      OperationFault result =
          makeFault(FaultKind::Bus, "scale stream {}: {} bytes at offset 0x{:x} are outside region {}", core,
                    needed, range.address, streams.scaleRegion);
      result.channel = static_cast<uint8_t>(Channel::Scales);
      return result;
    }
  }
  const ScaleFormat format = scaleFormat(target, op.accumulator);
  records.reserve(static_cast<size_t>(count));
  for (int64_t c = 0; c < count; ++c) {
    const std::byte* record = from[static_cast<size_t>(c % cores)] + c / cores * kScaleRecordBytes;
    records.push_back(
        decodeScaleRecord(std::span<const std::byte, kScaleRecordBytes>(record, kScaleRecordBytes), format));
  }
  return std::nullopt;
}

Outcome OutputStage::prepare(const Target& target, const KernelOperation& op,
                             std::span<const ScaleRecord> records, Scale global, int64_t channels,
                             const uint8_t* table) {
  const Architecture& npu = target.architecture();
  wideTables_ = npu.wideTables;
  type_ = op.ofm.type;
  outBytes_ = elementBytes(type_);
  channels_ = channels;
  table_ = op.activation.table;
  zeroPoint_ = op.ofm.zeroPoint;
  perChannel_ = !records.empty();

  const bool usesEntries =
      table_ != Table::None && (wideTables_ || (table_ != Table::Tanh && table_ != Table::Sigmoid));
  if (usesEntries) {
    const int64_t offset = int64_t{op.activation.slot} * 256;
    if (offset + tableBytes(table_) > 2048) {
      return makeFault(FaultKind::Parse, "table in slot {} extends beyond table memory", op.activation.slot);
    }
    entries_ = table + offset;
  }

  const bool narrow = outBytes_ <= 2;
  addZeroPoint_ = true;
  wrap_ = false;
  // The range to which the value is clamped before the table, or before it is stored.
  int64_t low = elementMin(type_), high = elementMax(type_);
  if (outBytes_ == 8 && !npu.wideResults)
    return makeFault(FaultKind::Parse, "64-bit OFM on {}", familyName(target.family));
  if (npu.clampHasType) {
    switch (op.activation.clipRange) {
      case 2:
        low = 0, high = 255;
        break;
      case 3:
        low = -128, high = 127;
        break;
      case 5:
        low = -32768, high = 32767;
        break;
      default:
        break;
    }
    // Assumption u55-int32-output: zero point and clamp are skipped for 32-bit OFMs without a table.
    const bool plain32 = !narrow && table_ == Table::None;
    addZeroPoint_ = !plain32;
    if (plain32) {
      low = elementMin(type_);
      high = elementMax(type_);
    } else {
      low = std::max<int64_t>(low, op.activation.min);
      high = std::min<int64_t>(high, op.activation.max);
    }
  } else if (op.activation.clamp) {
    const bool index8 = table_ == Table::Lut8 || table_ == Table::Lut8To16 || table_ == Table::Lut8To32;
    if (index8) {
      low = isSigned(type_) ? -128 : 0;
      high = isSigned(type_) ? 127 : 255;
    }
    low = std::max<int64_t>(low, op.activation.min);
    high = std::min<int64_t>(high, op.activation.max);
  } else {
    // Assumption u85-no-clip-wraps: without clamp 8- and 16-bit outputs keep the low bits; wider ones
    // saturate.
    wrap_ = narrow;
  }
  if (table_ == Table::Tanh || table_ == Table::Sigmoid) {
    low = std::numeric_limits<int32_t>::min();  // the input of the built-in functions is not clamped
    high = std::numeric_limits<int32_t>::max();
    wrap_ = false;
  }
  // An empty range (minimum above maximum) clamps to the maximum, as min(max(v, low), high) does.
  minimum_ = std::min(low, high);
  maximum_ = high;
  const bool unsignedIndex =
      op.activation.clipRange == 2 || (!isSigned(type_) && op.activation.clipRange == 0);
  indexBase_ = unsignedIndex ? 0 : 128;

  const auto n = perChannel_ ? static_cast<size_t>(channels) : size_t{1};
  bias_.assign(n, 0);
  positive_.resize(n);
  negative_.resize(n);
  multiplier_.resize(n);
  shift_.resize(n);
  maxBias_ = 0;
  maxMultiplier_ = 1;
  for (size_t c = 0; c < n; ++c) {
    Scale scale = global;
    if (perChannel_) {
      bias_[c] = records[c].bias;
      scale.multiplier = records[c].scale;
      scale.shift = records[c].shift;
    }
    const int shift = scale.shift & 63;
    const RoundingTerms terms = roundingTerms(scale.rounding, shift, scale.doubleRound);
    positive_[c] = terms.positive;
    negative_[c] = terms.negative;
    multiplier_[c] = scale.multiplier;
    shift_[c] = static_cast<uint8_t>(shift);
    maxBias_ = std::max(maxBias_, std::abs(bias_[c]));
    maxMultiplier_ = std::max(maxMultiplier_, scale.multiplier);
  }
  return std::nullopt;
}

bool OutputStage::canFinishFast(int64_t bound) const {
  if (wrap_ || outBytes_ > 4 || type_ == ElementType::UInt32) return false;
  if (table_ != Table::None && !(table_ == Table::Lut8 && outBytes_ == 1)) return false;
  // Keeps products below 2^62, so that no rounding term can overflow, and accumulators within int32.
  if (bound + maxBias_ > std::numeric_limits<int32_t>::max()) return false;
  if (maxMultiplier_ > 0x7fffffffu) return false;
  const auto fits = [](int64_t v, ElementType type) {
    return v >= elementMin(type) && v <= elementMax(type);
  };
  return fits(minimum_, type_) && fits(maximum_, type_);
}

void OutputStage::prepareFast(int64_t paddedChannels) {
  // Rows may be dense (depthwise); the per-channel arrays cover whole vectors nevertheless.
  const int64_t lanes = vectorLanes();
  const auto n = static_cast<size_t>((std::max(paddedChannels, channels_) + lanes - 1) / lanes * lanes);
  fast_.paddedChannels = paddedChannels;
  fast_.bias.assign(n, 0);
  fast_.multiplier.assign(n, 0);
  fast_.shift.assign(n, 0);
  fast_.positive.assign(n, 0);
  fast_.negative.assign(n, 0);
  for (size_t c = 0; c < static_cast<size_t>(channels_); ++c) {
    const size_t k = perChannel_ ? c : 0;
    fast_.bias[c] = static_cast<int32_t>(bias_[k]);
    fast_.multiplier[c] = static_cast<int32_t>(multiplier_[k]);
    fast_.shift[c] = shift_[k];
    fast_.positive[c] = positive_[k];
    fast_.negative[c] = negative_[k];
  }
}

void OutputStage::finishFast(const int32_t* acc, int64_t positions, std::byte* out) const {
  scaleRows(fast_, acc, positions, channels_, addZeroPoint_ ? zeroPoint_ : 0, minimum_, maximum_, outBytes_,
            out);
  if (table_ == Table::Lut8) {
    auto* values = reinterpret_cast<uint8_t*>(out);
    const auto base = static_cast<uint8_t>(indexBase_);
    for (int64_t i = 0; i < positions * channels_; ++i)
      values[i] = entries_[static_cast<uint8_t>(values[i] + base)];
  }
}

void OutputStage::finish(const int64_t* acc, int64_t positions, std::byte* out) const {
  // One scale for all channels: treat every element as a row of a single channel.
  const int64_t channels = perChannel_ ? channels_ : 1;
  const int64_t rows = perChannel_ ? positions : positions * channels_;
  const int64_t zeroPoint = addZeroPoint_ ? zeroPoint_ : 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < channels; ++c) {
      const auto k = static_cast<size_t>(c);
      const int64_t a = acc[row * channels + c];
      int64_t v;
      constexpr int64_t kNear = int64_t{1} << 30;
      if (a < kNear && a > -kNear && bias_[k] < kNear && bias_[k] > -kNear && multiplier_[k] <= 0x80000000u) {
        const int64_t sum = a + bias_[k];  // below 2^31, so the product is below 2^62
        v = (sum * static_cast<int64_t>(multiplier_[k]) + (sum >= 0 ? positive_[k] : negative_[k])) >>
            shift_[k];
      } else {
        v = scaleExact(saturate64(static_cast<Int128>(a) + bias_[k]), multiplier_[k], shift_[k],
                       {positive_[k], negative_[k]});
      }
      v = saturate64(static_cast<Int128>(v) + zeroPoint);
      if (!wrap_) v = std::min(std::max(v, minimum_), maximum_);
      if (table_ != Table::None) v = lookup(v);
      const int64_t i = row * channels + c;
      switch (outBytes_) {
        case 1:
          reinterpret_cast<uint8_t*>(out)[i] = static_cast<uint8_t>(v);
          break;
        case 2:
          reinterpret_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(v);
          break;
        case 4:
          reinterpret_cast<uint32_t*>(out)[i] = static_cast<uint32_t>(v);
          break;
        default:
          reinterpret_cast<int64_t*>(out)[i] = v;
          break;
      }
    }
  }
}

int64_t OutputStage::lookup(int64_t v) const {
  const auto index8 = static_cast<size_t>((v + indexBase_) & 255);
  switch (table_) {
    case Table::None:
      return v;
    case Table::Lut8:
      return isSigned(type_) ? static_cast<int8_t>(entries_[index8]) : entries_[index8];
    case Table::Lut8To16: {
      int16_t entry;
      std::memcpy(&entry, entries_ + index8 * 2, sizeof entry);
      return entry;
    }
    case Table::Lut8To32: {
      int32_t entry;
      std::memcpy(&entry, entries_ + index8 * 4, sizeof entry);
      return entry;
    }
    case Table::Lut16:
    case Table::Lut16To32: {
      const int64_t x = std::clamp<int64_t>(v, -32768, 32767);
      const auto i = static_cast<size_t>((x + 32768) >> 7);
      const int64_t f = x & 127;
      int16_t base, slope;
      std::memcpy(&base, entries_ + i * 4, sizeof base);
      std::memcpy(&slope, entries_ + i * 4 + 2, sizeof slope);
      // Assumption lut16-rounding: 16-bit results round half up; 32-bit ones keep 7 fractional bits.
      const int64_t y = table_ == Table::Lut16 ? base + ((slope * f + 64) >> 7) : base * 128 + slope * f;
      return std::clamp(y, elementMin(type_), elementMax(type_));
    }
    case Table::Tanh:
    case Table::Sigmoid: {
      const int64_t y = wideTables_ ? wideTable(v) : table_ == Table::Tanh ? tanhU55(v) : sigmoidU55(v);
      return std::clamp(y, elementMin(type_), elementMax(type_));
    }
  }
  return v;
}

/// Built-in functions of U55/U65: TFLite's int16 reference (assumption u55-builtin-functions).
int64_t OutputStage::tanhU55(int64_t v) const {
  const auto& table = sigmoidTable();
  const int64_t magnitude = std::abs(v);
  const auto u = static_cast<size_t>(std::min<int64_t>(magnitude >> 8, 255));
  const int64_t r =
      u >= 255 ? int64_t{0xffff} << 8 : (table[u] << 8) + (magnitude & 255) * (table[u + 1] - table[u]);
  constexpr int64_t kHalf = int64_t{1} << 23;
  return v >= 0 ? (r - kHalf + 128) >> 8 : (-r + kHalf + 127) >> 8;
}

int64_t OutputStage::sigmoidU55(int64_t v) const {
  const auto& table = sigmoidTable();
  const int64_t magnitude = std::abs(v);
  const auto u = static_cast<size_t>(std::min<int64_t>(magnitude >> 9, 255));
  const int64_t r =
      u >= 255 ? int64_t{0x7fff} << 10 : (table[u] << 9) + (magnitude & 511) * (table[u + 1] - table[u]);
  return v >= 0 ? (r + 512) >> 10 : ((int64_t{1} << 25) - r + 511) >> 10;
}

/// U85 tanh and sigmoid tables: 512 words of base and unsigned slope over the wide input.
int64_t OutputStage::wideTable(int64_t v) const {
  const int bits = table_ == Table::Tanh ? 8 : 9;
  int64_t i = v >> bits;
  int64_t f = v & ((int64_t{1} << bits) - 1);
  if (i < -256) {
    i = -256;
    f = (int64_t{1} << bits) - 1;
  } else if (i > 255) {
    i = 255;
    f = (int64_t{1} << bits) - 1;
  }
  int16_t base;
  uint16_t slope;
  const auto at = static_cast<size_t>(i + 256) * 4;
  std::memcpy(&base, entries_ + at, sizeof base);
  std::memcpy(&slope, entries_ + at + 2, sizeof slope);
  const int64_t t = (int64_t{base} * (int64_t{1} << bits)) + slope * f;
  if (table_ == Table::Tanh) return (t + 128 - (v < 0 ? 1 : 0)) >> 8;
  return (t + (int64_t{1} << 24) + 512 - (v < 0 ? 1 : 0)) >> 10;
}

}  // namespace carina::npu::model
