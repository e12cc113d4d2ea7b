// SPDX-License-Identifier: Apache-2.0
// Failures of operations inside the model; the command processor adds the command's offset.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "npu/model/model.hpp"

namespace carina::npu::model {

struct OperationFault {
  FaultKind kind = FaultKind::Parse;
  std::string reason;
  uint8_t channel = 0;
};
/// Empty on success.
using Outcome = std::optional<OperationFault>;

template <typename... Args>
OperationFault makeFault(FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return OperationFault{kind, fmt::format(format, std::forward<Args>(args)...), 0};
}

/// STATUS.faulting_channel values.
enum class Channel : uint8_t {
  Command = 0,
  Ifm = 1,
  Weights = 2,
  Scales = 3,
  DmaRead = 4,
  Ofm = 8,
  DmaWrite = 9
};

/// Maps region-relative addresses to host bytes.
class AddressMap {
 public:
  virtual ~AddressMap() = default;
  /// Null if [offset, offset + length) of the region is not accessible. Offsets may be "negative" (modulo
  /// 2^64).
  virtual std::byte* resolve(uint8_t region, uint64_t offset, uint64_t length, Access access) = 0;
};

}  // namespace carina::npu::model
