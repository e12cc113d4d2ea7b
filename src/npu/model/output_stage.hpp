// SPDX-License-Identifier: Apache-2.0
// From accumulators to stored elements: bias, scale, zero point, clamp, table, saturation (ethosu-numerics 1,
// 6).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "npu/isa/operation.hpp"
#include "npu/model/exact.hpp"
#include "npu/model/kernels.hpp"
#include "npu/model/operation_fault.hpp"
#include "npu/targets/target.hpp"
#include "npu/weights/scale_records.hpp"

namespace carina::npu::model {

/// Reads and unpacks `count` records of the operation's scale stream (U65: both cores, interleaved by
/// channel).
Outcome readScaleRecords(const Target& target, const KernelOperation& op, int64_t count, AddressMap& memory,
                         std::vector<ScaleRecord>& records);

class OutputStage {
 public:
  /// `records`: per channel, or empty for one scale for all (`global`). `table`: the 2048 bytes of table
  /// memory.
  Outcome prepare(const Target& target, const KernelOperation& op, std::span<const ScaleRecord> records,
                  Scale global, int64_t channels, const uint8_t* table);

  int outBytes() const { return outBytes_; }
  int64_t channels() const { return channels_; }

  /// Converts positions x channels dense accumulators to dense elements of the OFM type in `out`.
  void finish(const int64_t* acc, int64_t positions, std::byte* out) const;

  /// Whether accumulators within +-bound (before the bias) may use finishFast.
  bool canFinishFast(int64_t bound) const;
  /// Call once before finishFast (not thread-safe), with the accumulator row stride. Accumulator rows are
  /// read in whole vectors, so up to a vector after the last one must be readable.
  void prepareFast(int64_t paddedChannels);
  /// finish() for int32 accumulators.
  void finishFast(const int32_t* acc, int64_t positions, std::byte* out) const;

 private:
  int64_t lookup(int64_t v) const;
  int64_t tanhU55(int64_t v) const;
  int64_t sigmoidU55(int64_t v) const;
  int64_t wideTable(int64_t v) const;

  bool wideTables_ = false, wrap_ = false, addZeroPoint_ = true;
  ElementType type_ = ElementType::Int8;
  Table table_ = Table::None;
  int outBytes_ = 1;
  int64_t channels_ = 1, zeroPoint_ = 0, minimum_ = 0, maximum_ = 0;
  int64_t indexBase_ = 0;  // added to a value to index an 8-bit table
  const uint8_t* entries_ = nullptr;
  std::vector<int64_t> bias_, positive_, negative_;
  std::vector<uint32_t> multiplier_;
  std::vector<uint8_t> shift_;
  int64_t maxBias_ = 0;
  uint32_t maxMultiplier_ = 1;
  bool perChannel_ = false;
  ChannelScales fast_;
};

/// Bytes of a table in table memory; 0 without one.
int64_t tableBytes(Table table);

}  // namespace carina::npu::model
